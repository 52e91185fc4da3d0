/* SPDX-License-Identifier: MIT
 *
 * Many threads use the loader at the same time: discovery, activation, look-ups, registration,
 * loading. For ThreadSanitizer; what is asserted is that each plugin is activated once. */
#include "tests/plugin/suite.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 8 };

static atomic_int activations;
static pthread_barrier_t barrier;

static void count(void *user, int level, const char *plugin, const char *text)
{
    (void)user, (void)level, (void)plugin;
    if (!strcmp(text, "activated"))
        atomic_fetch_add(&activations, 1);
}

static tn_tensor *forward(tn_module *self, tn_tensor *input)
{
    (void)self;
    return input;
}

static void *everything(void *argument)
{
    static char names[THREADS][16];
    static tn_layer_def layers[THREADS];
    intptr_t self = (intptr_t)argument;
    long wrong = 0;
    snprintf(names[self], sizeof names[0], "Layer%d", (int)self);
    layers[self] = (tn_layer_def){ TN_HEAD(tn_layer_def), .name = names[self], .forward = forward };
    pthread_barrier_wait(&barrier);
    wrong += tn_plugin_activate("org.tenon.test.counting") != TN_OK;
    wrong += tn_plugin_activate("org.tenon.test.needs_good") != TN_OK;
    wrong += tn_plugin_activate("org.tenon.test.failing_activation") != TN_ERR_IO;
    wrong += tn_register(&layers[self]) != TN_OK;
    wrong += tn_plugin_load(path_of("aside/older.so")) != TN_OK;
    for (int i = 0; i < 50; i++) {
        wrong += tn_registry_find(TN_KIND_tn_layer_def, "GoodLayer") == NULL;
        wrong += tn_registry_find(TN_KIND_tn_layer_def, names[self]) == NULL;
        wrong += tn_registry_name(TN_KIND_tn_layer_def, 0) == NULL;
        tn_plugin_report report;
        wrong += tn_plugin_report_at(i % 4, &report) != TN_OK;
        wrong += strlen(report.reason) > 4000;
    }
    return (void *)wrong;
}

START_TEST(many_threads_meet_and_each_plugin_is_activated_once_rule_1)
{
    pthread_t threads[THREADS];
    void *wrong;
    tn_set_log_sink(count, NULL);
    place("good", "needs_good", "counting", "failing_activation", "text", NULL);
    ck_assert_int_eq(mkdir(path_of("aside"), 0755), 0);
    copy_file(FIXTURES "older.so", path_of("aside/older.so"));
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (intptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, everything, (void *)i), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &wrong);
        ck_assert_ptr_null(wrong);
    }
    ck_assert_int_eq(atomic_load(&activations), 1);
    expect("counting.so", TN_OUTCOME_OK, TN_STAGE_ACTIVATE, "");
    expect("aside/older.so", TN_OUTCOME_OK, TN_STAGE_VERSION, "");
    tn_shutdown();
}
END_TEST

static bool meet(void *user, const char *what, uint64_t done, uint64_t total)
{
    (void)user, (void)what, (void)done, (void)total;
    pthread_barrier_wait(&barrier);
    return true;
}

static void *activate_cross(void *id)
{
    tn_set_progress(meet, NULL);
    return (void *)(intptr_t)tn_plugin_activate(id);
}

START_TEST(two_activations_that_wait_for_each_other_fail_instead_of_hanging_law_4)
{
    static char a[] = "org.tenon.test.cross_a", b[] = "org.tenon.test.cross_b";
    pthread_t one, two;
    void *first, *second;
    place("cross_a", "cross_b", NULL);
    ck_assert_int_ge(tn_plugin_count(), 2);
    pthread_barrier_init(&barrier, NULL, 2);
    ck_assert_int_eq(pthread_create(&one, NULL, activate_cross, a), 0);
    ck_assert_int_eq(pthread_create(&two, NULL, activate_cross, b), 0);
    pthread_join(one, &first);
    pthread_join(two, &second);
    ck_assert_int_eq((int)(intptr_t)first, TN_ERR_RUNTIME);
    ck_assert_int_eq((int)(intptr_t)second, TN_ERR_RUNTIME);
    expect("cross_a.so", TN_OUTCOME_FAILED, TN_STAGE_ACTIVATE,
           "another thread activates the plugin and waits for this thread");
    expect("cross_b.so", TN_OUTCOME_FAILED, TN_STAGE_ACTIVATE,
           "another thread activates the plugin and waits for this thread");
}
END_TEST

static int threads_of_this_process(void)
{
    int found = 0;
    DIR *tasks = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(tasks);
    for (struct dirent *task; (task = readdir(tasks));)
        found += task->d_name[0] != '.';
    closedir(tasks);
    return found;
}

START_TEST(probing_starts_no_thread_law_6)
{
    int before = threads_of_this_process();
    place("good", "needs_good", "counting", "older", "options", NULL);
    ck_assert_int_ge(tn_plugin_count(), 5);
    ck_assert_int_eq(threads_of_this_process(), before);
}
END_TEST

/* The plugins of this tree, as the harness names them: asking them maps no driver and no BLAS,
 * and starts nothing. */
START_TEST(probing_the_plugins_of_this_tree_touches_nothing_rule_1)
{
    static const char *const late[] = { "libcuda.so", "libOpenCL", "openblas", "libcublas",
                                        "libpocl" };
    char line[8192];
    unsetenv("TENON_PLUGINS"); /* that the caller leaves some out must not fail this test */
    int before = threads_of_this_process();
    int64_t count = tn_plugin_count();
    ck_assert_int_ge(count, 0);
    ck_assert_int_eq(threads_of_this_process(), before);
    FILE *maps = fopen("/proc/self/maps", "r");
    ck_assert_ptr_nonnull(maps);
    while (fgets(line, sizeof line, maps))
        for (size_t i = 0; i < sizeof late / sizeof *late; i++)
            ck_assert_msg(!strstr(line, late[i]), "probing mapped %s", line);
    fclose(maps);
    for (int64_t i = 0; i < count; i++) {
        tn_plugin_report report;
        ck_assert_int_eq(tn_plugin_report_at(i, &report), TN_OK);
        ck_assert_msg(report.outcome == TN_OUTCOME_OK && !report.refused, "%s: %s", report.file,
                      report.reason);
    }
}
END_TEST

static Suite *threads(void)
{
    Suite *suite = suite_create("threads in the loader");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, set_up, take_down);
    tcase_set_timeout(all, 120);
    tcase_add_test(all, many_threads_meet_and_each_plugin_is_activated_once_rule_1);
    tcase_add_test(all, two_activations_that_wait_for_each_other_fail_instead_of_hanging_law_4);
    tcase_add_test(all, probing_starts_no_thread_law_6);
    suite_add_tcase(suite, all);
    TCase *tree = tcase_create("tree");
    tcase_add_test(tree, probing_the_plugins_of_this_tree_touches_nothing_rule_1);
    suite_add_tcase(suite, tree);
    return suite;
}

int main(void)
{
    return run_suite(threads());
}
