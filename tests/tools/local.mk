# SPDX-License-Identifier: MIT

EXTRA_DIST += %D%/bench.sh %D%/classes.json %D%/commands.sh %D%/compare.pl %D%/eval.sh %D%/files %D%/hostile_files.sh \
	%D%/labels.txt %D%/make_models.py %D%/pictures.py %D%/predict.sh
TESTS += %D%/bench.sh %D%/eval.sh %D%/hostile_files.sh %D%/predict.sh

# Pictures that tenon predict reads and writes, compared with Pillow, which PYTHON has (else: SKIP).
.PHONY: pictures
pictures: all
	@python='$(PYTHON)'; $${python:-python3} $(srcdir)/%D%/pictures.py $(srcdir) $(builddir) || test $$? -eq 77
