# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/foreign.la
plugins_foreign_la_SOURCES = \
	%D%/arena.c \
	%D%/arena.h \
	%D%/control.c \
	%D%/export/export.h \
	%D%/export/graph.c \
	%D%/export/graph.h \
	%D%/export/onnx.c \
	%D%/export/onnx.h \
	%D%/export/onnx_constants.c \
	%D%/export/onnx_elements.c \
	%D%/export/onnx_file.c \
	%D%/export/onnx_index.c \
	%D%/export/onnx_layers.c \
	%D%/export/onnx_make.c \
	%D%/export/onnx_products.c \
	%D%/export/onnx_reduce.c \
	%D%/export/onnx_shapes.c \
	%D%/export/onnx_text.c \
	%D%/export/onnx_windows.c \
	%D%/export/plain.c \
	%D%/export/sizes.c \
	%D%/foreign.h \
	%D%/host.c \
	%D%/modes.c \
	%D%/module.c \
	%D%/module_root.c \
	%D%/names.c \
	%D%/names.h \
	%D%/plugin.c \
	%D%/program.c \
	%D%/program.h \
	%D%/programs.c \
	%D%/rules.c \
	%D%/rules.h \
	%D%/rules_arithmetic.c \
	%D%/rules_bound.h \
	%D%/rules_call.c \
	%D%/rules_index.c \
	%D%/rules_layers.c \
	%D%/rules_literal.c \
	%D%/rules_make.c \
	%D%/rules_norm.c \
	%D%/rules_numbers.c \
	%D%/rules_parts.c \
	%D%/rules_products.c \
	%D%/rules_reduce.c \
	%D%/rules_rnn.c \
	%D%/rules_table.c \
	%D%/rules_text.c \
	%D%/rules_views.c \
	%D%/run.c \
	%D%/run.h \
	%D%/segments.c \
	%D%/onnx/buffer.c \
	%D%/onnx/buffer.h \
	%D%/onnx/control.c \
	%D%/onnx/scope.c \
	%D%/onnx/load.c \
	%D%/onnx/model.c \
	%D%/onnx/nodes.c \
	%D%/onnx/onnx.h \
	%D%/onnx/onnx_rules.h \
	%D%/onnx/rules_attention.c \
	%D%/onnx/rules_elements.c \
	%D%/onnx/rules_index.c \
	%D%/onnx/rules_layers.c \
	%D%/onnx/rules_numbers.c \
	%D%/onnx/rules_parts.c \
	%D%/onnx/rules_quantized.c \
	%D%/onnx/rules_recurrent.c \
	%D%/onnx/rules_reduce.c \
	%D%/onnx/rules_resize.c \
	%D%/onnx/rules_sequences.c \
	%D%/onnx/rules_shapes.c \
	%D%/onnx/rules_signal.c \
	%D%/onnx/rules_training.c \
	%D%/onnx/rules_unsigned.c \
	%D%/onnx/rules_vision.c \
	%D%/onnx/rules_windows.c \
	%D%/onnx/scope.h \
	%D%/onnx/tensor.c \
	%D%/onnx/tree.c \
	%D%/onnx/wire.c \
	%D%/onnx/wire.h \
	%D%/onnx/write.c \
	$(TN_VISION_SOURCES) \
	$(TN_ZIP_SOURCES)
if HAVE_JANSSON
plugins_foreign_la_SOURCES += \
	%D%/export/aten.c \
	%D%/export/aten.h \
	%D%/export/aten_file.c \
	%D%/export/aten_layers.c \
	%D%/export/aten_make.c \
	%D%/export/aten_rules.c \
	%D%/export/aten_text.c \
	%D%/pt2.c \
	%D%/pt2.h \
	%D%/pt2_archive.c \
	%D%/pt2_graph.c \
	%D%/pt2_program.c \
	%D%/pt2_spec.c \
	%D%/pt2_stack.c \
	%D%/pt2_weights.c \
	%D%/pt2_write.c
endif
plugins_foreign_la_CPPFLAGS = -I$(srcdir)/plugins/foreign -I$(srcdir)/plugins/zip $(TN_PLUGIN_CPPFLAGS)
plugins_foreign_la_CFLAGS = $(AM_CFLAGS) $(TN_FUZZED_CFLAGS) $(JANSSON_CFLAGS) $(ZLIB_CFLAGS)
plugins_foreign_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_foreign_la_LIBADD = $(JANSSON_LIBS) $(ZLIB_LIBS) $(LIBM)
