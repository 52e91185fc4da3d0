# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/profile.la
CLEANFILES += %D%/profile_script.c %D%/profile_style.c
plugins_profile_la_SOURCES = \
	%D%/buffer.c \
	%D%/ceiling.c \
	%D%/ceiling_template.h \
	%D%/device.c \
	%D%/flame.c \
	%D%/flops.c \
	%D%/group.c \
	%D%/observer.c \
	%D%/page.c \
	%D%/page.h \
	%D%/plugin.c \
	%D%/profile.h \
	%D%/profile_script.js \
	%D%/profile_style.css \
	%D%/record.c \
	%D%/record.h \
	%D%/result.c \
	%D%/schedule.c \
	%D%/table.c \
	%D%/text.c \
	%D%/trace.c \
	%D%/write.c
plugins_profile_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_profile_la_LDFLAGS = $(TN_PLUGIN_LINK)
