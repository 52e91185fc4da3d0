/* SPDX-License-Identifier: MIT
 *
 * Everything that a program needs: cc program.c $(pkg-config --cflags --libs tenon) */
#ifndef TENON_TENON_H
#define TENON_TENON_H

#include <tenon/abi.h>
#include <tenon/base.h>
#include <tenon/value.h>
#include <tenon/tensor.h>
#include <tenon/op.h>
#include <tenon/hooks.h>
#include <tenon/grad.h>
#include <tenon/module.h>
#include <tenon/container.h>
#include <tenon/lazy.h>
#include <tenon/state.h>
#include <tenon/parametrize.h>
#include <tenon/convert.h>
#include <tenon/prune.h>
#include <tenon/train.h>
#include <tenon/data.h>
#include <tenon/graph.h>
#include <tenon/clip_grad.h>
#include <tenon/comm.h>
#include <tenon/contrib.h>
#include <tenon/runtime.h>
#include <tenon/ops.h>
#include <tenon/parameters.h>
#include <tenon/scaler.h>
#include <tenon/pieces.h>
#include <tenon/creation.h>
#include <tenon/equality.h>
#include <tenon/fuse.h>
#include <tenon/average.h>
#include <tenon/checkpoint.h>
#include <tenon/gradcheck.h>
#include <tenon/print.h>

#endif
