# SPDX-License-Identifier: MIT
#
# make interchange: files and networks between Tenon and PyTorch, live. PYTHON names a Python that has PyTorch, safetensors and NumPy; without
# them it says SKIP.
EXTRA_DIST += %D%/interchange.py
.PHONY: interchange
interchange: all
	@python='$(PYTHON)'; $${python:-python3} $(srcdir)/tests/models/interchange.py $(srcdir) $(builddir) || test $$? -eq 77
