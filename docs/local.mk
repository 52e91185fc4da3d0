# SPDX-License-Identifier: MIT

TN_MANS += %D%/man/tenon.1 %D%/man/tenon.3 %D%/man/tenon-plugin.7 %D%/man/tenon-env.7

# Installed for authors of plugins; README.md names them.
pagesdir = $(docdir)/docs
dist_pages_DATA = %D%/README.md %D%/architecture.md %D%/install.md %D%/abi.md %D%/errors.md %D%/spec-strings.md %D%/plugins.md %D%/backends.md %D%/conform.md \
	%D%/modules.md %D%/layers.md %D%/state.md %D%/conversion.md %D%/gradients.md %D%/formats.md %D%/tensors.md %D%/backend-opencl.md %D%/backend-cuda.md %D%/kernels-onednn.md %D%/hooks.md \
	%D%/operators.md %D%/api.md %D%/behaviour-broken.md %D%/behaviour-notes.md %D%/mutation.md %D%/glossary.md
