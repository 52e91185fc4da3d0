# SPDX-License-Identifier: MIT
#
# The Python module. Nothing of it is built here: pip does that, or its test.

EXTRA_DIST += \
	%D%/build_wheel.py \
	%D%/bundle.py \
	%D%/check.sh \
	%D%/generate.py \
	%D%/pyproject.toml \
	%D%/stubs.py \
	%D%/tenon/__init__.py \
	%D%/tenon/_compose.py \
	%D%/tenon/_compose_index.py \
	%D%/tenon/_compose_math.py \
	%D%/tenon/_compose_shape.py \
	%D%/tenon/_compose_table.py \
	%D%/tenon/_compose_tensor.py \
	%D%/tenon/_context.py \
	%D%/tenon/_data.py \
	%D%/tenon/_define.py \
	%D%/tenon/_dlpack.py \
	%D%/tenon/_index.py \
	%D%/tenon/_library.py \
	%D%/tenon/_make.py \
	%D%/tenon/_module.py \
	%D%/tenon/_observer.py \
	%D%/tenon/_operator.py \
	%D%/tenon/_ops.py \
	%D%/tenon/_signatures.py \
	%D%/tenon/_tensor.py \
	%D%/tenon/_train.py \
	%D%/tenon/_values.py \
	%D%/tenon/amp.py \
	%D%/tenon/checkpoint.py \
	%D%/tenon/data.py \
	%D%/tenon/nn/__init__.py \
	%D%/tenon/nn/functional.py \
	%D%/tenon/nn/init.py \
	%D%/tenon/optim.py \
	%D%/tests/index_programs.py \
	%D%/tests/indexing.txt \
	%D%/tests/test_amp.py \
	%D%/tests/test_checkpoint.py \
	%D%/tests/test_data.py \
	%D%/tests/test_define.py \
	%D%/tests/test_exchange.py \
	%D%/tests/test_guide.py \
	%D%/tests/test_indexing.py \
	%D%/tests/test_module.py \
	%D%/tests/test_names.py \
	%D%/tests/test_tensor.py
TESTS += %D%/check.sh
