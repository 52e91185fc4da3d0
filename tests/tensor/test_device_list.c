/* SPDX-License-Identifier: MIT
 *
 * Device types and devices: registration, finding, the default one, fork. */
#include "tests/tensor/fixture.h"

#include <sys/wait.h>
#include <unistd.h>

START_TEST(devices_are_found_by_name_and_stay_the_same)
{
    room_open();
    ck_assert_ptr_eq(device("cpu"), device("cpu:0"));
    ck_assert_str_eq(tn_device_name(device("vault:1")), "vault:1");
    ck_assert_str_eq(tn_device_type(device("vault:1")), "vault");
    ck_assert_int_eq(tn_device_index(device("vault:1")), 1);
    ck_assert(tn_device_is_host(device("cpu")) && !tn_device_is_host(device("vault")));
    ck_assert(tn_device_has_memory(device("vault")) && !tn_device_has_memory(device("ghost")));
    /* Only what was asked for is open. */
    ck_assert_int_eq(room.opened, 4);
    room_close();
}
END_TEST

START_TEST(a_name_that_is_none_is_answered)
{
    static const char *const bad[] = { "",       ":0",     "cpu:",   "cpu:x",
                                       "cpu:-1", "cpu:+1", "cpu: 1", "cpu:99999999999999999999" };

    room_open();
    for (int i = 0; i < 8; i++) {
        ck_assert_ptr_null(tn_device_find(bad[i]));
        ck_assert_int_eq(tn_error_last_code(), TN_ERR_VALUE);
    }
    ck_assert_ptr_null(tn_device_find(NULL));
    tn_error_clear();
    ck_assert_ptr_null(tn_device_find("vualt"));
    ck_assert_int_eq(tn_error_code(), TN_ERR_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "did you mean \"vault\"?"));
    said("cpu, vault, brick, ghost");
    ck_assert_ptr_null(tn_device_find("vault:2"));
    said("\"vault:0\" to \"vault:1\"");
    room_close();
}
END_TEST

START_TEST(devices_are_listed_by_type_and_index)
{
    static const char *const names[] = { "brick:0", "cpu:0", "ghost:0", "vault:0", "vault:1" };

    room_open();
    ck_assert_int_eq(tn_device_count(), 5);
    for (int i = 0; i < 5; i++)
        ck_assert_str_eq(tn_device_name(tn_device_at(i)), names[i]);
    ck_assert_ptr_null(tn_device_at(5));
    said("device: index: out of range, got 5; expected 0 to 4");
    ck_assert_ptr_null(tn_device_at(-1));
    tn_error_clear();
    room_close();
}
END_TEST

static tn_status no_hardware(const tn_backend_def *self, int32_t *count)
{
    (void)self;
    static int times;

    (void)count;
    ck_assert_int_eq(++times, 1); /* called only once, even though it fails */
    return tn_fail(TN_ERR_UNAVAILABLE, "no such card in this machine");
}

static tn_status one(const tn_backend_def *self, int32_t *count)
{
    (void)self;
    *count = 1;
    return TN_OK;
}

static tn_status broken_open(const tn_backend_def *self, int32_t index, void **handle)
{
    (void)self;
    static int times;

    (void)index;
    (void)handle;
    ck_assert_int_eq(++times, 1);
    return tn_fail(TN_ERR_DEVICE, "the card is on fire");
}

static tn_status silent_open(const tn_backend_def *self, int32_t index, void **handle)
{
    (void)self;
    (void)index;
    (void)handle;
    return TN_ERR_DEVICE;
}

static void close_nothing(void *handle)
{
    (void)handle;
}

static tn_status countless(const tn_backend_def *self, int32_t *count)
{
    (void)self;
    *count = INT32_MAX;
    return TN_OK;
}

START_TEST(a_backend_without_devices_says_why_each_time)
{
    static const tn_backend_def many = { TN_HEAD(tn_backend_def),       .type = "many",
                                         .flags = TN_BACKEND_NO_MEMORY, .enumerate = countless,
                                         .open = broken_open,           .close = close_nothing };
    static const tn_backend_def absent = { TN_HEAD(tn_backend_def),       .type = "absent",
                                           .flags = TN_BACKEND_NO_MEMORY, .enumerate = no_hardware,
                                           .open = broken_open,           .close = close_nothing };
    static const tn_backend_def broken = { TN_HEAD(tn_backend_def),       .type = "broken",
                                           .flags = TN_BACKEND_NO_MEMORY, .enumerate = one,
                                           .open = broken_open,           .close = close_nothing };
    static const tn_backend_def silent = { TN_HEAD(tn_backend_def),       .type = "silent",
                                           .flags = TN_BACKEND_NO_MEMORY, .enumerate = one,
                                           .open = silent_open,           .close = close_nothing };

    room_open();
    ok(tn__device_add_backend(&absent, NULL));
    ok(tn__device_add_backend(&broken, NULL));
    ok(tn__device_add_backend(&silent, NULL));
    ok(tn__device_add_backend(&many, NULL));
    for (int i = 0; i < 2; i++) {
        ck_assert_ptr_null(tn_device_find("many"));
        said("wrong number of devices, got 2147483647; expected 0 to 4096");
        ck_assert_ptr_null(tn_device_find("absent"));
        ck_assert_int_eq(tn_error_code(), TN_ERR_UNAVAILABLE);
        ck_assert_ptr_nonnull(strstr(tn_error_text(), "device \"absent\": not available"));
        said("no such card in this machine");
        ck_assert_ptr_null(tn_device_find("broken:0"));
        said("the card is on fire");
    }
    ck_assert_ptr_null(tn_device_find("silent"));
    ck_assert_int_eq(tn_error_code(), TN_ERR_DEVICE);
    said("recorded no message");
    /* Not counted, and no error is recorded. */
    ck_assert_int_eq(tn_device_count(), 7);
    ck_assert(!tn_failed());
    ok(tn_set_default_device("absent, broken, vault:1, cpu"));
    ck_assert_str_eq(tn_device_name(tn_default_device()), "vault:1");
    fails(tn_set_default_device("absent,broken"), TN_ERR_UNAVAILABLE);
    ck_assert_int_eq(tn_set_default_device("absent,broken"), TN_ERR_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "default device: none of \"absent,broken\""));
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "no such card"));
    said("on fire");
    ck_assert_str_eq(tn_device_name(tn_default_device()), "vault:1");
    room_close();
}
END_TEST

static void *native_event(void *dev, void *event)
{
    (void)dev;
    return event;
}

START_TEST(rule_22_a_taken_device_type_is_refused)
{
    static const tn_backend_def again = { TN_HEAD(tn_backend_def),       .type = "vault",
                                          .flags = TN_BACKEND_NO_MEMORY, .enumerate = one,
                                          .open = broken_open,           .close = close_nothing };
    tn_backend_def half = { TN_HEAD(tn_backend_def), .type = "half", .enumerate = one,
                            .open = broken_open, .close = close_nothing };
    static const tn_backend_def name = { TN_HEAD(tn_backend_def),       .type = "No Name",
                                         .flags = TN_BACKEND_NO_MEMORY, .enumerate = one,
                                         .open = broken_open,           .close = close_nothing };
    tn__plugin plugin = { .id = "org.example.second", .file = "/some/where/second.so" };

    room_open();
    ck_assert_int_eq(tn__device_add_backend(&again, &plugin), TN_ERR_REFUSED);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "/some/where/second.so"));
    said("(program) provides it already");
    ck_assert_int_eq(tn__device_add_backend(&half, NULL), TN_ERR_VALUE);
    said("function alloc: it is NULL");
    half.flags = TN_BACKEND_NO_MEMORY;
    half.memory_share = vault_share;
    ck_assert_int_eq(tn__device_add_backend(&half, NULL), TN_ERR_VALUE);
    said("function memory_open: it is NULL");
    half.memory_share = NULL;
    half.memory_open = vault_open_shared;
    ck_assert_int_eq(tn__device_add_backend(&half, NULL), TN_ERR_VALUE);
    said("function memory_share: it is NULL");
    half.memory_open = NULL;
    half.native_event = native_event;
    ck_assert_int_eq(tn__device_add_backend(&half, NULL), TN_ERR_VALUE);
    said("function stream_new (needed with native_event): it is NULL");
    ck_assert_int_eq(tn__device_add_backend(&name, NULL), TN_ERR_VALUE);
    said("No Name");
    ck_assert_int_eq(tn__device_type_count(), 4);
    room_close();
}
END_TEST

START_TEST(rule_4_a_shorter_descriptor_of_an_older_plugin_is_completed_with_null)
{
    tn_backend_def old;

    room_open();
    memset(&old, 0x5a, sizeof old);
    old = (tn_backend_def){ TN_HEAD(tn_backend_def),       .type = "old",
                            .flags = TN_BACKEND_NO_MEMORY, .enumerate = one,
                            .open = broken_open,           .close = close_nothing };
    memset((char *)&old + offsetof(tn_backend_def, native), 0x5a,
           sizeof old - offsetof(tn_backend_def, native));
    old.head.size = offsetof(tn_backend_def, native);
    ok(tn__device_add_backend(&old, NULL));
    ck_assert_ptr_null(tn__device_type_find("old")->backend.native);
    ck_assert_ptr_null((void *)(uintptr_t)tn__device_type_find("old")->backend.native_stream);
    ck_assert_int_eq(tn__device_type_find("old")->dlpack, TN_DEVICE_TYPE_FIRST + 2);
    room_close();
}
END_TEST

START_TEST(the_default_device_is_of_thread_then_program)
{
    room_open();
    ck_assert_str_eq(tn_device_name(tn_default_device()), "cpu:0");
    tn_device_begin(device("vault:1"));
    ck_assert_str_eq(tn_device_name(tn_default_device()), "vault:1");
    tn_device_begin(NULL);
    ck_assert_str_eq(tn_device_name(tn_default_device()), "vault:1");
    tn_device_begin(device("brick"));
    ck_assert_str_eq(tn_device_name(tn_default_device()), "brick:0");
    tn_device_end();
    tn_device_end();
    tn_device_end();
    ck_assert_str_eq(tn_device_name(tn_default_device()), "cpu:0");
    tn_device_end();
    said("tn_device_end: no tn_device_begin");
    ok(tn_set_default_device("brick"));
    ck_assert_str_eq(tn_device_name(tn_default_device()), "brick:0");
    fails(tn_set_default_device(" , "), TN_ERR_VALUE);
    fails(tn_set_default_device(NULL), TN_ERR_VALUE);
    room_close();
}
END_TEST

START_TEST(the_environment_chooses_the_first_that_works)
{
    setenv("TENON_DEVICE", "nothing, vault:7 ,vault:1,cpu", 1);
    room_open();
    ck_assert_str_eq(tn_device_name(tn_default_device()), "vault:1");
    ck_assert(!tn_failed());
    room_close();
}
END_TEST

START_TEST(a_device_says_what_it_is_and_publishes_handles)
{
    tn_device_info info = { TN_HEAD(tn_device_info) };

    room_open();
    ok(tn_device_describe(device("vault"), &info));
    ck_assert_str_eq(info.name, "Vault of the tests");
    ck_assert_int_eq(info.alignment, 256);
    ck_assert_int_eq(info.memory_free, -1);
    ok(tn_device_describe(device("cpu"), &info));
    ck_assert_str_eq(info.name, "");
    ck_assert_str_eq(tn_device_native(device("vault"), "tests.vault.key/1"), "key");
    ck_assert_ptr_null(tn_device_native(device("vault"), "tests.vault.door/1"));
    said("device vault:0: publishes no interface \"tests.vault.door/1\"");
    ck_assert_ptr_null(tn_device_native(device("cpu"), "x"));
    tn_error_clear();
    room_close();
}
END_TEST

START_TEST(after_fork_the_host_works_and_others_say_so)
{
    tn_tensor *x, *v;
    int status;
    pid_t child;

    room_open();
    x = tn_tensor_full(TN_SHAPE(4), 2, TN_F32, NULL);
    v = tn_tensor_full(TN_SHAPE(4), 2, TN_F32, device("vault"));
    child = fork();
    if (child == 0) {
        float out[4];
        int good = 1;
        tn_tensor *y = tn_tensor_full(TN_SHAPE(4), 3, TN_F32, NULL);
        good &= y != NULL && tn__copy(x, y) == TN_OK &&
                tn_item(tn_tensor_as_strided(x, TN_SHAPE(1), TN_INTS(1), 0)) == 3;
        good &= tn_tensor_empty(TN_SHAPE(4), TN_F32, tn_device_find("vault")) == NULL;
        good &= tn_error_code() == TN_ERR_RUNTIME &&
                strstr(tn_error_text(), "does not work after fork") != NULL;
        good &= tn_tensor_copy_out(v, out, sizeof out) == TN_ERR_RUNTIME;
        tn_error_clear();
        good &= tn_device_find("vault:1") == NULL &&
                strstr(tn_error_last()->message, "after fork") != NULL;
        _exit(good ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert(((float *)tn_tensor_data(x))[0] == 2);
    room_close();
}
END_TEST

static tn_value property(const tn_pack *pack, const char *name)
{
    int64_t at = tn_pack_find(pack, name);

    ck_assert_msg(at >= 0, "%s is missing", name);
    return tn_pack_at(pack, at);
}

START_TEST(properties_are_named_and_have_types)
{
    tn_pack *vault = tn_pack_new(), *cpu = tn_pack_new();

    room_open();
    ok(tn_device_properties(device("vault"), vault));
    ok(tn_device_properties(device("cpu"), cpu));
    ck_assert_str_eq(property(vault, "name").as.s, "Vault of the tests");
    ck_assert_int_eq(property(vault, "memory_total").as.i, 1 << 30);
    ck_assert_int_eq(property(vault, "alignment").as.i, 256);
    ck_assert_uint_eq(property(vault, "memory_kinds").count, 4);
    ck_assert_str_eq(property(vault, "memory_kinds").as.list[1].as.s, "pinned");
    ck_assert_str_eq(property(vault, "memory_kinds").as.list[3].as.s, "shared");
    ck_assert_int_eq(property(vault, "external_events").as.i, 1);
    ck_assert_int_eq(property(vault, "stream_priorities").as.list[0].as.i, -2);
    ck_assert_int_eq(property(vault, "stream_priorities").as.list[1].as.i, 0);
    ck_assert_uint_eq(property(vault, "peer_copies").kind, TN_VALUE_BOOL);
    ck_assert_int_eq(property(vault, "peer_copies").as.i, 1);
    ck_assert_int_eq(property(vault, "host_memory").as.i, 0);
    ck_assert_str_eq(property(vault, "pci").as.s, "0000:01:00.0"); /* the backend's own */
    ck_assert_int_eq(property(cpu, "host_memory").as.i, 1);
    ck_assert_int_eq(property(cpu, "external_streams").as.i, 0);
    ck_assert_int_eq(property(cpu, "external_events").as.i, 0);
    ck_assert_int_eq(tn_pack_find(cpu, "pci"), -1);
    fails(tn_device_properties(device("cpu"), NULL), TN_ERR_VALUE);
    tn_pack_drop(vault);
    tn_pack_drop(cpu);
    room_close();
}
END_TEST

START_TEST(devices_say_whose_memory_they_reach)
{
    room_open();
    ck_assert(tn_device_reaches(device("vault:0"), device("vault:1")));
    ck_assert(!tn_device_reaches(device("vault:1"), device("vault:0")));
    ck_assert(tn_device_reaches(device("brick"), device("brick")));
    ck_assert(!tn_device_reaches(device("brick"), device("vault")));
    ck_assert(!tn_device_reaches(device("cpu"), device("vault")));
    ck_assert(!tn_failed());
    room_close();
}
END_TEST

RUN_TESTS("device", properties_are_named_and_have_types, devices_say_whose_memory_they_reach,
          devices_are_found_by_name_and_stay_the_same, a_name_that_is_none_is_answered,
          devices_are_listed_by_type_and_index, a_backend_without_devices_says_why_each_time,
          rule_22_a_taken_device_type_is_refused,
          rule_4_a_shorter_descriptor_of_an_older_plugin_is_completed_with_null,
          the_default_device_is_of_thread_then_program,
          the_environment_chooses_the_first_that_works,
          a_device_says_what_it_is_and_publishes_handles,
          after_fork_the_host_works_and_others_say_so)
