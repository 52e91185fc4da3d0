/* SPDX-License-Identifier: MIT
 *
 * Dotted paths: finding modules, parameters and buffers by them, and putting children at them (the
 * rows GET of the behaviour specification). */
#include "tests/module/toy_layers.h"
#include "tests/spec/proves.h"

/* Puts a new module of this spec at the path. */
static tn_status put(tn_module *module, const char *path, const char *spec, bool strict)
{
    tn_module *child = parsed(spec);
    tn_status status = tn_module_set_child(module, path, child, strict);
    tn_module_drop(child);
    return status;
}

/* "0:Linear 1:ReLU " */
#define expect_children(module_, text_)                                                            \
    do {                                                                                           \
        char names_[512] = "";                                                                     \
        for (int64_t i_ = 0; i_ < tn_module_child_count(module_); i_++) {                          \
            strcat(strcat(names_, tn_module_child_name(module_, i_)), ":");                        \
            strcat(strcat(names_, tn_module_type(tn_module_child_at(module_, i_))), " ");          \
        }                                                                                          \
        ck_assert_str_eq(names_, text_);                                                           \
    } while (0)

static const char net_spec[] = "Sequential(a=Sequential(Linear(2, 3), ReLU(), "
                               "Sequential(act=Sigmoid(), out=Linear(3, 1, bias=False))), "
                               "b=Probe(2))";

START_TEST(a_module_is_found_part_by_part_get_001_get_002)
{
    register_probes();
    tn_module *m = parsed(net_spec);
    ck_assert_ptr_eq(tn_module_find(m, ""), m);
    tn_module *a = tn_module_child(m, "a");
    ck_assert_ptr_eq(tn_module_find(m, "a"), a);
    ck_assert_ptr_eq(tn_module_find(m, "a.0"), tn_module_child(a, "0"));
    ck_assert_ptr_eq(tn_module_find(m, "a.2.act"), tn_module_child(tn_module_child(a, "2"), "act"));
    ck_assert_ptr_eq(tn_module_find(a, "2.out"), tn_module_find(m, "a.2.out"));
    TN_PROVES("GET-001", "GET-002");
    tn_module_drop(m);
}
END_TEST

START_TEST(a_part_that_is_no_module_is_named_with_the_type_it_was_looked_for_in_get_003_get_004)
{
    register_probes();
    tn_module *m = parsed(net_spec);
    static const struct {
        const char *path, *words;
    } rows[] = {
        { "c", "Sequential has no attribute `c` (looking for \"c\"); children: a, b" },
        { "b.deep.er", "Probe has no attribute `deep` (looking for \"b.deep.er\")" },
        { "a.0.nope", "Linear has no attribute `nope`" },
        { "a..0", "Sequential has no attribute ``" },
        { "a.", "Sequential has no attribute ``" },
        { ".a", "Sequential has no attribute ``" },
        { "a.0.weight", "`weight` of Linear is not a module but a parameter" },
        { "a.0.weight.x", "`weight` of Linear is not a module but a parameter" },
        { "b.count", "`count` of Probe is not a module but a buffer" },
        { "b.reserved", "`reserved` of Probe is not a module but a parameter" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_ptr_null(tn_module_find(m, rows[i].path));
        expect_failure(TN_ERR_ATTR, rows[i].words);
    }
    TN_PROVES("GET-003", "GET-004");
    tn_module_drop(m);
}
END_TEST

START_TEST(a_parameter_is_found_by_its_path_get_005_get_006)
{
    TN_SCOPE;
    register_probes();
    tn_module *m = parsed(net_spec);
    tn_tensor *own = tn_parameter(tn_tensor_full(TN_SHAPE(1), 1.0, TN_F32, NULL), true);
    ck_assert_int_eq(tn_module_add_parameter(m, "own", own), TN_OK);
    ck_assert_ptr_eq(tn_module_find_parameter(m, "own"), own);
    tn_tensor *weight = tn_module_get(tn_module_find(m, "a.2.out"), "weight");
    ck_assert_ptr_eq(tn_module_find_parameter(m, "a.2.out.weight"), weight);
    TN_PROVES("GET-005");

    ck_assert_ptr_null(tn_module_find_parameter(m, "a.0.wait"));
    expect_failure(TN_ERR_ATTR, "Linear has no attribute `wait` (looking for \"a.0.wait\"); "
                                "parameters: weight, bias");
    ck_assert_ptr_null(tn_module_find_parameter(m, "a.7.weight"));
    expect_failure(TN_ERR_ATTR, "Sequential has no attribute `7`");
    ck_assert_ptr_null(tn_module_find_parameter(m, ".own"));
    expect_failure(TN_ERR_ATTR, "Sequential has no attribute ``");
    ck_assert_ptr_null(tn_module_find_parameter(m, ""));
    expect_failure(TN_ERR_ATTR, "Sequential has no attribute ``");
    ck_assert_ptr_null(tn_module_find_parameter(m, "a.0"));
    expect_failure(TN_ERR_ATTR, "`0` of Sequential is not a parameter but a module");
    /* Reserved: found by tn_module_find_tensor, but no parameter. */
    ck_assert_ptr_eq(tn_module_find_tensor(m, "b.reserved"), TN_NONE);
    ck_assert_ptr_null(tn_module_find_parameter(m, "b.reserved"));
    expect_failure(TN_ERR_ATTR, "`reserved` of Probe is not a parameter: its slot is empty");
    TN_PROVES("GET-006");
    tn_module_drop(m);
}
END_TEST

START_TEST(a_buffer_is_found_by_its_path_get_007_get_008)
{
    register_probes();
    tn_module *m = parsed(net_spec), *b = tn_module_child(m, "b");
    ck_assert_ptr_eq(tn_module_find_buffer(m, "b.count"), tn_module_get(b, "count"));
    ck_assert_ptr_eq(tn_module_find_buffer(m, "b.scratch"), tn_module_get(b, "scratch"));
    ck_assert_int_eq(tn_module_add_buffer(b, "later", TN_NONE, 0), TN_OK);
    ck_assert_ptr_eq(tn_module_find_buffer(m, "b.later"), TN_NONE);
    ck_assert(!tn_failed());
    ck_assert_ptr_null(tn_module_find_buffer(m, "b.cuont"));
    expect_failure(TN_ERR_ATTR, "Probe has no attribute `cuont` (looking for \"b.cuont\"); "
                                "buffers: count, scratch, later");
    ck_assert_ptr_null(tn_module_find_buffer(m, "b"));
    expect_failure(TN_ERR_ATTR, "`b` of Sequential is not a buffer but a module");
    TN_PROVES("GET-007");

    ck_assert_ptr_null(tn_module_find_buffer(m, "b.weight"));
    expect_failure(TN_ERR_ATTR, "`weight` of Probe is not a buffer but a parameter");
    ck_assert_ptr_null(tn_module_find_parameter(m, "b.count"));
    expect_failure(TN_ERR_ATTR, "`count` of Probe is not a parameter but a buffer");
    TN_PROVES("GET-008");
    tn_module_drop(m);
}
END_TEST

START_TEST(a_child_is_put_at_a_path_get_010_get_016_get_017)
{
    register_probes();
    tn_module *m = parsed(net_spec);
    ck_assert_int_eq(put(m, "a.2.act", "Tanh()", false), TN_OK);
    expect_children(tn_module_find(m, "a.2"), "act:Tanh out:Linear ");
    ck_assert_int_eq(put(m, "a.2.last", "ReLU()", false), TN_OK);
    expect_children(tn_module_find(m, "a.2"), "act:Tanh out:Linear last:ReLU ");
    ck_assert_int_eq(put(m, "a.last.act", "ReLU()", false), TN_ERR_ATTR);
    expect_failure(TN_ERR_ATTR, "Sequential has no attribute `last`");
    TN_PROVES("GET-010");

    tn_module *zero = parsed("Linear(5, 6)");
    ck_assert_int_eq(tn_module_set_child(m, "0", zero, false), TN_OK);
    ck_assert_ptr_eq(tn_module_find(m, "0"), zero);
    tn_module_drop(zero); /* the slot has its own reference */
    ck_assert_str_eq(tn_module_type(tn_module_find(m, "0")), "Linear");
    expect_children(m, "a:Sequential b:Probe 0:Linear ");
    TN_PROVES("GET-016");

    /* An entry in the middle keeps its place, a new one comes last. */
    ck_assert_int_eq(put(m, "b", "Flatten()", false), TN_OK);
    expect_children(m, "a:Sequential b:Flatten 0:Linear ");
    ck_assert_int_eq(probe_destroyed, 1);
    ck_assert_int_eq(put(m, "c", "ReLU()", false), TN_OK);
    expect_children(m, "a:Sequential b:Flatten 0:Linear c:ReLU ");
    /* Setting the same module again changes nothing. */
    ck_assert_int_eq(tn_module_set_child(m, "a", tn_module_child(m, "a"), true), TN_OK);
    expect_children(m, "a:Sequential b:Flatten 0:Linear c:ReLU ");
    tn_module_drop(m);
}
END_TEST

START_TEST(a_child_is_refused_where_it_cannot_be_put_get_011_to_get_015)
{
    register_probes();
    tn_module *m = parsed(net_spec);
    ck_assert_int_eq(put(m, "", "ReLU()", false), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "child of Sequential: path: it is empty");
    ck_assert_int_eq(put(m, "", "ReLU()", true), TN_ERR_VALUE);
    tn_error_clear();
    TN_PROVES("GET-011");

    /* In C only NULL is not a module: the call returns the error of the call that returned NULL. */
    ck_assert_int_eq(tn_module_set_child(m, "a.1", tn_module_new("Linear(-1, 2)"), false),
                     tn_error_code());
    ck_assert_int_ne(tn_error_code(), TN_OK);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "in_features"));
    tn_error_clear();
    ck_assert_int_ne(tn_module_set_child(m, "a.1", NULL, false), TN_OK);
    tn_error_clear();
    ck_assert_str_eq(tn_module_type(tn_module_find(m, "a.1")), "ReLU");
    TN_PROVES("GET-012");

    ck_assert_int_eq(put(m, "x.l", "ReLU()", false), TN_ERR_ATTR);
    expect_failure(TN_ERR_ATTR, "Sequential has no attribute `x` (looking for \"x.l\")");
    ck_assert_int_eq(put(m, ".l", "ReLU()", false), TN_ERR_ATTR);
    tn_error_clear();
    ck_assert_int_eq(put(m, "a..l", "ReLU()", false), TN_ERR_ATTR);
    tn_error_clear();
    ck_assert_int_eq(put(m, "a.0.weight.l", "ReLU()", false), TN_ERR_ATTR);
    expect_failure(TN_ERR_ATTR, "`weight` of Linear is not a module but a parameter");
    TN_PROVES("GET-013");

    ck_assert_int_eq(put(m, "b.act", "ReLU()", true), TN_ERR_ATTR);
    expect_failure(TN_ERR_ATTR, "Probe has no attribute `act` (looking for \"b.act\")");
    ck_assert_int_eq(put(m, "a.1", "Tanh()", true), TN_OK);
    ck_assert_str_eq(tn_module_type(tn_module_find(m, "a.1")), "Tanh");
    TN_PROVES("GET-014");

    for (int strict = 0; strict < 2; strict++) {
        ck_assert_int_eq(put(m, "b.weight", "ReLU()", strict), TN_ERR_ATTR);
        expect_failure(TN_ERR_ATTR, "`weight` of Probe is not a module but a parameter");
        ck_assert_int_eq(put(m, "b.reserved", "ReLU()", strict), TN_ERR_ATTR);
        expect_failure(TN_ERR_ATTR, "`reserved` of Probe is not a module but a parameter");
        ck_assert_int_eq(put(m, "b.count", "ReLU()", strict), TN_ERR_ATTR);
        expect_failure(TN_ERR_ATTR, "`count` of Probe is not a module but a buffer");
    }
    TN_PROVES("GET-015");

    /* Names must not be empty, and a module must not contain itself. */
    ck_assert_int_eq(put(m, "a.", "ReLU()", false), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "module name can't be empty string");
    ck_assert_int_eq(tn_module_set_child(m, "a.2.act", m, true), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "modules form a tree");
    expect_children(m, "a:Sequential b:Probe ");
    expect_children(tn_module_child(m, "a"), "0:Linear 1:Tanh 2:Sequential ");
    expect_children(tn_module_find(m, "a.2"), "act:Sigmoid out:Linear ");
    expect_children(tn_module_child(m, "b"), "");
    tn_module_drop(m);
}
END_TEST

START_TEST(each_failing_allocation_of_paths_leaves_the_module_as_it_was_law_4)
{
    register_probes();
    tn_module *m = parsed(net_spec), *fresh = parsed("Sequential(Tanh())");
    tn_tensor *weight = tn_module_get(tn_module_find(m, "a.2.out"), "weight");
    char before[1024], after[1024];
    ck_assert_int_ge(tn_module_repr(m, before, sizeof before), 0);
    uint64_t failures = 0;
    for (uint64_t n = 1;; n++) {
        tn__memory_fail(n);
        tn_status status = tn_module_set_child(m, "a.2.more", fresh, false);
        bool reached = tn__memory_fail(0) >= n;
        if (!reached) {
            ck_assert_int_eq(status, TN_OK);
            break;
        }
        ck_assert_int_eq(status, TN_ERR_MEMORY);
        ck_assert_int_eq(tn_error_code(), TN_ERR_MEMORY);
        tn_error_clear();
        ck_assert_int_ge(tn_module_repr(m, after, sizeof after), 0);
        ck_assert_str_eq(after, before);
        failures++;
    }
    ck_assert_uint_gt(failures, 2);
    expect_children(tn_module_find(m, "a.2"), "act:Sigmoid out:Linear more:Sequential ");
    for (uint64_t n = 1; n < 100; n++) {
        tn__memory_fail(n);
        tn_tensor *found = tn_module_find_parameter(m, "a.2.out.weight");
        tn_tensor *missing = found != NULL ? tn_module_find_buffer(m, "a.2.out.weight") : NULL;
        bool reached = tn__memory_fail(0) >= n;
        ck_assert_ptr_null(missing);
        ck_assert_ptr_eq(found, found != NULL ? weight : NULL);
        ck_assert(tn_failed());
        tn_error_clear();
        if (!reached)
            break;
    }
    tn_module_drop(fresh);
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_module_is_found_part_by_part_get_001_get_002,
        a_part_that_is_no_module_is_named_with_the_type_it_was_looked_for_in_get_003_get_004,
        a_parameter_is_found_by_its_path_get_005_get_006,
        a_buffer_is_found_by_its_path_get_007_get_008,
        a_child_is_put_at_a_path_get_010_get_016_get_017,
        a_child_is_refused_where_it_cannot_be_put_get_011_to_get_015,
        each_failing_allocation_of_paths_leaves_the_module_as_it_was_law_4,
        NULL,
    };
    return suite_run("paths", tests);
}
