# SPDX-License-Identifier: MIT

check_PROGRAMS += bench/chain bench/convolutions bench/data bench/dispatch bench/infer bench/ops bench/state bench/train
bench_chain_SOURCES = %D%/chain.c
bench_chain_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
bench_chain_LDADD = $(TN_LINK)
bench_data_SOURCES = %D%/data.c
bench_data_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
bench_data_LDADD = $(TN_LINK)
bench_dispatch_SOURCES = %D%/dispatch.c
bench_dispatch_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
bench_dispatch_LDADD = $(TN_LINK)

bench_ops_SOURCES = %D%/ops.c %D%/ops.h %D%/peer.c %D%/peer.h %D%/slow.c %D%/slow.h %D%/ceilings.c %D%/numbers.c
bench_ops_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
bench_ops_LDADD = $(TN_LINK) $(LIBM)
bench_convolutions_SOURCES = %D%/convolutions.c %D%/ceilings.c %D%/numbers.c %D%/ops.h
bench_convolutions_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
bench_convolutions_LDADD = $(TN_LINK) $(LIBM)
TN_BENCH_COMPARE = %D%/compare.c %D%/compare.h %D%/networks.c %D%/networks.h %D%/peer.c %D%/peer.h %D%/ceilings.c %D%/numbers.c %D%/ops.h
bench_infer_SOURCES = %D%/infer.c $(TN_BENCH_COMPARE)
bench_infer_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
bench_infer_LDADD = $(TN_LINK) $(LIBM)
bench_train_SOURCES = %D%/train.c $(TN_BENCH_COMPARE)
bench_train_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
bench_train_LDADD = $(TN_LINK) $(LIBM)
bench_state_SOURCES = %D%/state.c
bench_state_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
bench_state_LDADD = $(TN_LINK)
EXTRA_DIST += %D%/README.md %D%/results.md %D%/results-operators.md %D%/run %D%/ops.txt %D%/reasons.txt %D%/peer.py %D%/peer_state.py %D%/peer_dispatch.py %D%/compare.py %D%/networks.py %D%/unet.py %D%/data.py

bench: bench/dispatch$(EXEEXT)
	./run bench/dispatch$(EXEEXT)
# Instructions a call of each case, by callgrind: what the noise of a machine does not touch.
instructions: bench/dispatch$(EXEEXT)
	./run $(SHELL) $(srcdir)/tests/op/instructions.sh --all
# The loader beside PyTorch's: PYTHON names one that has torchvision; DATA_SPEED has options.
.PHONY: data-speed
data-speed: bench/data$(EXEEXT)
	$${PYTHON:-python3} $(srcdir)/bench/data.py "./run bench/data$(EXEEXT)" $(DATA_SPEED)
