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
