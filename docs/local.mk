# SPDX-License-Identifier: MIT

dist_man_MANS += %D%/man/tenon.1 %D%/man/tenon.3 %D%/man/tenon-plugin.7 %D%/man/tenon-env.7
EXTRA_DIST += %D%/README.md %D%/design.md %D%/abi.md %D%/errors.md %D%/spec-strings.md %D%/plugins.md %D%/backends.md %D%/modules.md %D%/formats.md %D%/tensors.md
