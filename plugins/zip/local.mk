# SPDX-License-Identifier: MIT

# Compiled into each plugin that reads or writes zip archives.
TN_ZIP_SOURCES = \
	%D%/zip.c \
	%D%/zip.h \
	%D%/zip_crc.c \
	%D%/zip_inflate.c \
	%D%/zip_limit.c \
	%D%/zip_write.c
