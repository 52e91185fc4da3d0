/* SPDX-License-Identifier: MIT
 *
 * Paths of files in the build tree and in the source tree. On another machine, where a packed test
 * runs (tests/device), the environment variables TN_TEST_BUILDDIR and TN_TEST_SRCDIR name these
 * folders. */
#ifndef TN_TESTS_FOLDERS_H
#define TN_TESTS_FOLDERS_H

#include <stdio.h>
#include <stdlib.h>

enum { TEST_PATH = 4096 };

static inline const char *test_path(char *text, const char *variable, const char *otherwise,
                                    const char *name)
{
    const char *folder = getenv(variable);

    snprintf(text, TEST_PATH, "%s/%s", folder != NULL ? folder : otherwise, name);
    return text;
}
#define built_path(text, name) test_path(text, "TN_TEST_BUILDDIR", TN_TEST_BUILDDIR, name)
#define source_path(text, name) test_path(text, "TN_TEST_SRCDIR", TN_TEST_SRCDIR, name)

#endif
