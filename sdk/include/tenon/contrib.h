/* SPDX-License-Identifier: MIT
 *
 * The descriptors of all that a plugin (or a program, with tn_register) can contribute, each in a
 * header of its own: device types in backend.h, kernels in kernel.h, operators in operator.h,
 * layers in layer.h, inits in init.h, optimizers and schedulers in optimizer.h, pruning methods in
 * prune.h, datasets and transforms in data.h, file formats in format.h, passes and compilers in
 * compiler.h, communicators in comm.h, observers in observer.h.
 *
 * Every descriptor begins with TN_HEAD and must stay valid until the process ends, so most are
 * `static const`. The core copies it into a struct of its own that is filled with zeros first, so a
 * member that an older plugin does not have is NULL. In callbacks, `self` and `op` point to this
 * copy. A callback reports a failure with tn_fail and returns the status; it must not end the
 * process, print, or start threads. The core does not read the member `user` of a descriptor, and
 * every callback can reach it, so one function can serve several descriptors, for example those
 * that a program makes at run time or that come from another language.
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_CONTRIB_H
#define TENON_CONTRIB_H

#include <tenon/backend.h>
#include <tenon/comm.h>
#include <tenon/compiler.h>
#include <tenon/data.h>
#include <tenon/format.h>
#include <tenon/init.h>
#include <tenon/kernel.h>
#include <tenon/layer.h>
#include <tenon/observer.h>
#include <tenon/operator.h>
#include <tenon/optimizer.h>
#include <tenon/prune.h>

#endif
