# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/kinds.c \
	%D%/private.h \
	%D%/file_load_save.c \
	%D%/temporary.c \
	%D%/shards.c \
	%D%/sibling_read.c \
	%D%/sibling_write.c \
	%D%/target.c \
	%D%/reader.c \
	%D%/file_set.c \
	%D%/folder.c \
	%D%/metadata.c \
	%D%/state_module.c \
	%D%/tied_weights.c \
	%D%/writer.c
