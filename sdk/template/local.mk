# SPDX-License-Identifier: MIT

# The templates of tenon new. A project is made from the files of `common` and of its kind.
templatedir = $(pkgdatadir)/template
templatecommondir = $(templatedir)/common
dist_templatecommon_DATA = \
	%D%/common/.gitignore.in \
	%D%/common/CMakeLists.txt.in \
	%D%/common/Makefile.am.in \
	%D%/common/Makefile.in \
	%D%/common/README.md.in \
	%D%/common/check.sh.in \
	%D%/common/configure.ac.in
templatelayerdir = $(templatedir)/layer
dist_templatelayer_DATA = %D%/layer/NAME.c.in %D%/layer/cases.txt.in %D%/layer/example.c.in
templatebackenddir = $(templatedir)/backend
dist_templatebackend_DATA = %D%/backend/NAME.c.in %D%/backend/check.sh.in %D%/backend/example.c.in
templatekernelsdir = $(templatedir)/kernels
dist_templatekernels_DATA = %D%/kernels/NAME.c.in %D%/kernels/cases.txt.in %D%/kernels/example.c.in
templateopdir = $(templatedir)/op
dist_templateop_DATA = %D%/op/NAME.c.in %D%/op/cases.txt.in %D%/op/example.c.in
templateoptimizerdir = $(templatedir)/optimizer
dist_templateoptimizer_DATA = %D%/optimizer/NAME.c.in %D%/optimizer/cases.txt.in %D%/optimizer/example.c.in
templateformatdir = $(templatedir)/format
dist_templateformat_DATA = %D%/format/NAME.c.in %D%/format/cases.txt.in %D%/format/example.c.in
templatedatasetdir = $(templatedir)/dataset
dist_templatedataset_DATA = %D%/dataset/NAME.c.in %D%/dataset/cases.txt.in \
	%D%/dataset/example.c.in
templatetransformdir = $(templatedir)/transform
dist_templatetransform_DATA = %D%/transform/NAME.c.in %D%/transform/cases.txt.in \
	%D%/transform/example.c.in
templateschedulerdir = $(templatedir)/scheduler
dist_templatescheduler_DATA = %D%/scheduler/NAME.c.in %D%/scheduler/cases.txt.in \
	%D%/scheduler/example.c.in
templateinitdir = $(templatedir)/init
dist_templateinit_DATA = %D%/init/NAME.c.in %D%/init/cases.txt.in \
	%D%/init/example.c.in
templatepruningdir = $(templatedir)/pruning
dist_templatepruning_DATA = %D%/pruning/NAME.c.in %D%/pruning/cases.txt.in \
	%D%/pruning/example.c.in
templatepassdir = $(templatedir)/pass
dist_templatepass_DATA = %D%/pass/NAME.c.in %D%/pass/cases.txt.in \
	%D%/pass/example.c.in
templatecompilerdir = $(templatedir)/compiler
dist_templatecompiler_DATA = %D%/compiler/NAME.c.in %D%/compiler/cases.txt.in \
	%D%/compiler/example.c.in
templateobserverdir = $(templatedir)/observer
dist_templateobserver_DATA = %D%/observer/NAME.c.in %D%/observer/cases.txt.in \
	%D%/observer/example.c.in
templatecommunicatordir = $(templatedir)/communicator
dist_templatecommunicator_DATA = %D%/communicator/NAME.c.in %D%/communicator/cases.txt.in \
	%D%/communicator/example.c.in
