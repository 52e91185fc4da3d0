# SPDX-License-Identifier: MIT

check_PROGRAMS += bench/dispatch
bench_dispatch_SOURCES = %D%/dispatch.c
bench_dispatch_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
bench_dispatch_LDADD = $(TN_LINK)

bench: bench/dispatch$(EXEEXT)
	./run bench/dispatch$(EXEEXT)
