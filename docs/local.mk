# SPDX-License-Identifier: MIT

TN_MANS += %D%/man/tenon.1 %D%/man/tenon.3 %D%/man/tenon-plugin.7 %D%/man/tenon-env.7

# Installed with their folders, for authors of plugins; README.md is the index.
pagesdir = $(docdir)
nobase_dist_pages_DATA = %D%/README.md %D%/abi.md \
	%D%/start/install.md %D%/start/architecture.md %D%/start/glossary.md \
	%D%/guides/modules.md %D%/guides/optimizers.md %D%/guides/schedulers.md %D%/guides/training.md %D%/guides/train-command.md %D%/guides/report.md %D%/guides/data.md %D%/guides/eval-predict-bench.md %D%/guides/layers.md %D%/guides/parametrizations.md %D%/guides/spec-strings.md %D%/guides/hooks.md %D%/guides/state.md %D%/guides/formats.md %D%/guides/from-onnx.md %D%/guides/from-pytorch.md \
	%D%/guides/conversion.md %D%/guides/pruning.md %D%/guides/quantization.md %D%/guides/gradients.md %D%/guides/tensors.md %D%/guides/errors.md %D%/guides/graphs.md %D%/guides/distributed.md %D%/guides/scripts.md %D%/guides/profiling.md %D%/guides/python.md %D%/guides/pytorch-without-operator.md \
	%D%/guides/recipes/from-pytorch.md %D%/guides/recipes/fine-tuning.md %D%/guides/recipes/threads.md \
	%D%/guides/recipes/own-module.md %D%/guides/recipes/profiling.md \
	%D%/guides/recipes/averages.md %D%/guides/recipes/char-gpt.md %D%/guides/recipes/denoising.md \
	%D%/guides/recipes/embedding.md %D%/guides/recipes/module-hooks.md %D%/guides/recipes/own-function.md \
	%D%/guides/recipes/python-and-cpp.md \
	%D%/reference/operators.md %D%/reference/operator-results.md %D%/reference/quantized-operators.md %D%/reference/promotion.md %D%/reference/api.md %D%/reference/behaviour-notes.md %D%/reference/behaviour-broken.md %D%/reference/ported-tests.md %D%/reference/datasets.md %D%/reference/models.md \
	%D%/plugins/writing.md %D%/plugins/backends.md %D%/plugins/check.md %D%/plugins/graphs.md %D%/plugins/bindings.md \
	%D%/plugins/backend-opencl.md %D%/plugins/backend-cuda.md %D%/plugins/kernels-onednn.md \
	%D%/contributors/mutation.md
