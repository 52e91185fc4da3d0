# SPDX-License-Identifier: MIT

# The device type that tenon check compares with.
TN_CONFORM_REFERENCE = \
	sdk/conform/reference.h \
	sdk/conform/reference.c \
	sdk/conform/reference_each.c \
	sdk/conform/reference_fold.c \
	sdk/conform/reference_move.c
