/* SPDX-License-Identifier: MIT
 *
 * Everything that a plugin needs: cc -shared -fPIC plugin.c $(pkg-config --cflags tenon-plugin). A
 * plugin includes this header instead of <tenon/tenon.h> and does not link libtenon. Exactly one
 * source file of a plugin uses the macro TN_PLUGIN or TN_PLUGIN_EXPORT. */
#ifndef TENON_PLUGIN_H
#define TENON_PLUGIN_H

#if defined(TENON_ABI_H) && !defined(TN_BUILD_PLUGIN)
#error "a plugin includes <tenon/plugin.h> before, and instead of, the headers for programs"
#endif
#ifndef TN_BUILD_PLUGIN
#define TN_BUILD_PLUGIN 1
#endif

#include <tenon/abi.h>
#include <tenon/base.h>
#include <tenon/value.h>
#include <tenon/tensor.h>
#include <tenon/op.h>
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
#include <tenon/comm.h>
#include <tenon/contrib.h>
#include <tenon/runtime.h>
#include <tenon/query.h>
#include <tenon/host.h>
#include <tenon/ops.h>
#include <tenon/pieces.h>
#include <tenon/fuse.h>

#endif
