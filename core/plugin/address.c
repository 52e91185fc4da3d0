/* SPDX-License-Identifier: MIT
 *
 * What an address that a plugin passes points to, as far as the mapped files say: code or data, and
 * how many bytes of it. For memory that is not mapped from a file, such as the heap, nothing is
 * known. */
#include "core/plugin/private.h"

#include <dlfcn.h>
#include <link.h>

struct sought {
    uintptr_t address;
    uint32_t flags;
    size_t left;
};

static int look(struct dl_phdr_info *info, size_t size, void *user)
{
    struct sought *s = user;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD || s->address < start ||
            s->address - start >= segment->p_memsz)
            continue;
        s->flags = segment->p_flags;
        s->left = segment->p_memsz - (s->address - start);
        return 1;
    }
    return 0;
}

bool tn__address_is_code(const void *address)
{
    struct sought s = { (uintptr_t)address, 0, 0 };
    return dl_iterate_phdr(look, &s) && s.flags & PF_X;
}

size_t tn__address_left(const void *address)
{
    struct sought s = { (uintptr_t)address, 0, 0 };
    return dl_iterate_phdr(look, &s) ? s.left : SIZE_MAX;
}

const char *tn__address_plugin(const void *address)
{
    Dl_info where;
    struct stat at;
    const char *id = "";
    if (dladdr(address, &where) && where.dli_fname && !stat(where.dli_fname, &at)) {
        tn__plugins_lock();
        tn__plugin *plugin = tn__plugin_by_inode(&at);
        id = plugin ? plugin->id : "";
        tn__plugins_unlock();
    }
    return id[0] ? id : tn__error_plugin_id();
}
