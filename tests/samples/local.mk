# SPDX-License-Identifier: MIT

TESTS += %D%/samples.sh
# tests/house/outside.sh runs recipes.sh with the copy that it installs.
EXTRA_DIST += %D%/samples.sh %D%/recipes.sh %D%/make_resnet.py %D%/files/resnet.txt %D%/files/resnet.pth %D%/files/images.npy %D%/files/logits.npy
