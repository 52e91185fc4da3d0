/* SPDX-License-Identifier: MIT
 *
 * Checks of a plugin file before it is mapped: which users could have written it (docs/abi.md, rule
 * 14), and whether mapping it would end the process. A sanitizer's runtime calls exit() if it is
 * loaded too late; a truncated file causes SIGBUS. */
#include "core/plugin/private.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <unistd.h>

/* ---- owner and permissions ------------------------------------------------------------------- */

/* Gets the status of the file that contains this code: libtenon, or a program that the core is
 * linked into. */
static bool own_file(struct stat *at)
{
    Dl_info where;
    return (dladdr((const void *)&tn__plugins_first, &where) && where.dli_fname &&
            where.dli_fname[0] == '/' && !stat(where.dli_fname, at)) ||
           !stat("/proc/self/exe", at);
}

static bool trusted_owner(uid_t owner)
{
    struct stat ours;
    /* The effective user: a set-uid program acts with the rights of that user, not of the user who
     * started it. */
    return owner == 0 || owner == geteuid() || (own_file(&ours) && owner == ours.st_uid);
}

/* Trusts the group of the process, which on many systems contains only one user, whose files are
 * group-writable by default. Also trusts a group that may write to libtenon: its members do not
 * need a plugin to run code here. */
static bool trusted_group(gid_t group)
{
    struct stat ours;
    return group == 0 || group == getegid() ||
           (own_file(&ours) && (ours.st_mode & S_IWGRP) && ours.st_gid == group);
}

bool tn__file_check_owner(const struct stat *at, const char *what, char *words, size_t size)
{
    if (S_ISREG(at->st_mode) && at->st_mode & (S_ISUID | S_ISGID)) {
        /* A program that runs with other rights, not a library. On a folder, set-gid only says
         * which group its new files get. */
        tn_snprint(words, size, "the %s is set-uid or set-gid; expected neither; chmod ug-s", what);
        return false;
    }
    if (at->st_mode & S_IWOTH) {
        tn_snprint(words, size,
                   "the %s is world-writable: anybody could have written code to it; chmod o-w",
                   what);
        return false;
    }
    if ((at->st_mode & S_IWGRP) && !trusted_group(at->st_gid)) {
        tn_snprint(words, size,
                   "the %s is writable by group %lld; expected root's group or the group of this "
                   "process; chmod g-w",
                   what, (long long)at->st_gid);
        return false;
    }
    if (trusted_owner(at->st_uid))
        return true;
    tn_snprint(words, size,
               "the %s is owned by user %lld; expected root, the user of this process, or the "
               "owner of libtenon",
               what, (long long)at->st_uid);
    return false;
}

bool tn__file_check_above(const char *path, char *words, size_t size)
{
    char above[PATH_MAX];
    struct stat at, below;
    tn_snprint(above, sizeof above, "%s", path);
    if (stat(above, &below))
        return true;
    for (char *slash; above[1] && (slash = strrchr(above, '/')); below = at) {
        slash[slash == above] = 0;
        if (stat(above, &at))
            return true;
        if (!(at.st_mode & S_IWOTH))
            continue;
        if (!(at.st_mode & S_ISVTX)) {
            tn_snprint(words, size,
                       "the folder %s above it is world-writable: anybody could replace its "
                       "contents; chmod o-w, or +t as on /tmp",
                       above);
            return false;
        }
        if (!trusted_owner(below.st_uid)) {
            tn_snprint(words, size,
                       "the folder %s above it is world-writable, and the entry in it is owned by "
                       "user %lld, who could replace it",
                       above, (long long)below.st_uid);
            return false;
        }
    }
    return true;
}

/* ---- ELF ------------------------------------------------------------------------------------- */

typedef ElfW(Ehdr) header;
typedef ElfW(Phdr) segment;
typedef ElfW(Dyn) dynamic;

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
    return pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* Returns the offset in the file of a virtual address, by the loadable segments; 0 if no segment
 * contains the address. */
static uint64_t place_of(int fd, const header *h, uint64_t address)
{
    segment s;
    for (int i = 0; i < h->e_phnum; i++) {
        if (!read_at(fd, &s, sizeof s, h->e_phoff + (uint64_t)i * sizeof s))
            return 0;
        if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz)
            return s.p_offset + (address - s.p_vaddr);
    }
    return 0;
}

static const char *const runtimes[] = { "libasan.so", "libtsan.so", "libmsan.so",
                                        "libclang_rt.asan", "libclang_rt.tsan" };

/* Searches the process for a library whose path contains `name`. */
struct sought {
    const char *name;
    bool found;
};
static int seek(struct dl_phdr_info *info, size_t size, void *user)
{
    struct sought *s = user;
    (void)size;
    s->found = s->found || (info->dlpi_name && strstr(info->dlpi_name, s->name));
    return s->found;
}

/* Finds the ELF header of the object whose segments contain an address: it is at the beginning of
 * the segment for offset 0. */
struct sought_header {
    const char *at;
    const header *header;
};
static int find_header(struct dl_phdr_info *info, size_t size, void *user)
{
    struct sought_header *s = user;
    const header *first = NULL;
    bool inside = false;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const segment *p = &info->dlpi_phdr[i];
        const char *from = (const char *)(uintptr_t)(info->dlpi_addr + p->p_vaddr);
        if (p->p_type != PT_LOAD)
            continue;
        if (p->p_offset == 0 && p->p_filesz >= sizeof(header))
            first = (const void *)from;
        inside = inside || (s->at >= from && s->at < from + p->p_memsz);
    }
    if (inside && first && !memcmp(first->e_ident, ELFMAG, SELFMAG))
        s->header = first;
    return inside;
}

static bool needed_acceptable(const char *name, char *words, size_t size)
{
    for (int64_t i = 0; i < tn__countof(runtimes); i++) {
        struct sought s = { runtimes[i], false };
        if (strncmp(name, runtimes[i], strlen(runtimes[i])))
            continue;
        dl_iterate_phdr(seek, &s);
        if (s.found)
            continue;
        tn_snprint(
            words, size,
            "it was compiled with a sanitizer whose runtime (%s) this process does not have; "
            "compile both the plugin and the program with it, or neither",
            name);
        return false;
    }
    return true;
}

/* Limits for files that are made to waste time. The rest is not checked; the dynamic linker checks
 * it later. */
enum { MOST_SEGMENTS = 256, MOST_ENTRIES = 4096 };

static bool dynamic_acceptable(int fd, const header *h, const segment *s, char *words, size_t size)
{
    uint64_t strings = 0, count = s->p_filesz / sizeof(dynamic);
    dynamic d = { 0 };
    count = count < MOST_ENTRIES ? count : MOST_ENTRIES;
    for (uint64_t i = 0; i < count && !strings; i++) {
        if (!read_at(fd, &d, sizeof d, s->p_offset + i * sizeof d) || d.d_tag == DT_NULL)
            return true;
        if (d.d_tag == DT_STRTAB && !(strings = place_of(fd, h, d.d_un.d_ptr)))
            return true;
    }
    for (uint64_t i = 0; i < count; i++) {
        char name[64] = "";
        if (!read_at(fd, &d, sizeof d, s->p_offset + i * sizeof d) || d.d_tag == DT_NULL)
            break;
        if (d.d_tag == DT_NEEDED &&
            pread(fd, name, sizeof name - 1, (off_t)(strings + d.d_un.d_val)) > 0 &&
            !needed_acceptable(name, words, size))
            return false;
    }
    return true;
}

/* Checks that a segment, if it will be mapped, is inside the file. The dynamic linker also maps a
 * truncated file (after a full disk or an interrupted copy), and access to the missing part ends
 * the process with SIGBUS. */
static bool segment_whole(int fd, const segment *s, char *words, size_t size)
{
    struct stat at;
    if (s->p_type != PT_LOAD || fstat(fd, &at) ||
        (s->p_offset <= (uint64_t)at.st_size && s->p_filesz <= (uint64_t)at.st_size - s->p_offset))
        return true;
    tn_snprint(
        words, size,
        "the file is truncated: it has %lld bytes, and a segment needs %llu bytes at %llu; copy or "
        "build it again",
        (long long)at.st_size, (unsigned long long)s->p_filesz, (unsigned long long)s->p_offset);
    return false;
}

static const char *machine_name(unsigned machine, char *number, size_t size)
{
    enum { loongarch = 258 }; /* EM_LOONGARCH, which older headers lack */
    static const struct {
        unsigned machine;
        const char *name;
    } names[] = {
        { EM_386, "x86" },     { EM_X86_64, "x86-64" },    { EM_ARM, "32-bit ARM" },
        { EM_PPC64, "ppc64" }, { EM_AARCH64, "aarch64" },  { EM_S390, "s390" },
        { EM_RISCV, "riscv" }, { loongarch, "loongarch" },
    };
    for (int64_t i = 0; i < tn__countof(names); i++)
        if (names[i].machine == machine)
            return names[i].name;
    tn_snprint(number, size, "machine %u", machine);
    return number;
}

/* Checks that the file is for the processor of this process, by comparison with the ELF header of
 * libtenon itself. The dynamic linker says of such a file that it does not exist. */
static bool machine_fits(const header *h, char *words, size_t size)
{
    struct sought_header ours = { .at = (const void *)&tn__plugins_first };
    char theirs_text[32], ours_text[32];
    dl_iterate_phdr(find_header, &ours);
    if (!ours.header || (h->e_machine == ours.header->e_machine &&
                         h->e_ident[EI_CLASS] == ours.header->e_ident[EI_CLASS] &&
                         h->e_ident[EI_DATA] == ours.header->e_ident[EI_DATA]))
        return true;
    tn_snprint(words, size,
               "compiled for another processor, got %s, %s bits; expected %s, %s bits: compile it "
               "for this machine",
               machine_name(h->e_machine, theirs_text, sizeof theirs_text),
               h->e_ident[EI_CLASS] == ELFCLASS64 ? "64" : "32",
               machine_name(ours.header->e_machine, ours_text, sizeof ours_text),
               ours.header->e_ident[EI_CLASS] == ELFCLASS64 ? "64" : "32");
    return false;
}

tn_outcome tn__file_check_elf(const char *path, char *words, size_t size)
{
    header h;
    segment s;
    tn_outcome outcome = TN_OUTCOME_OK;
    /* O_NONBLOCK: opening a FIFO would wait for a writer */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return TN_OUTCOME_OK; /* dlopen will fail and say why */
    bool is_elf = read_at(fd, &h, sizeof h, 0) && !memcmp(h.e_ident, ELFMAG, SELFMAG);
    if (is_elf && !machine_fits(&h, words, size)) {
        outcome = TN_OUTCOME_REFUSED;
    } else if (is_elf && h.e_phentsize == sizeof s &&
               h.e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
               h.e_phnum <= MOST_SEGMENTS) {
        for (int i = 0; i < h.e_phnum && outcome == TN_OUTCOME_OK; i++) {
            if (!read_at(fd, &s, sizeof s, h.e_phoff + (uint64_t)i * sizeof s))
                break;
            if (!segment_whole(fd, &s, words, size))
                outcome = TN_OUTCOME_FAILED;
            else if (s.p_type == PT_DYNAMIC && !dynamic_acceptable(fd, &h, &s, words, size))
                outcome = TN_OUTCOME_REFUSED;
        }
    }
    close(fd);
    return outcome;
}

/* ---- two runtimes of a kind (rule 13) -------------------------------------------------------- */

struct family {
    const char *what;
    const char *const *names;
    int level; /* level of the log message */
    const char *words;
    char first[512];
};

static const char *const openmp_names[] = { "libgomp.so", "libomp.so", "libiomp5.so", NULL };
static const char *const blas_names[] = { "openblas", "libmkl_core", "libmkl_rt",
                                          "libblis",  "libf77blas",  NULL };
static const char *const nothing[] = { NULL };
/* Two OpenMP runtimes have two pools of threads. Two BLAS libraries are harmless if a plugin opened
 * its own with RTLD_LOCAL, because then only that plugin calls it; every program with NumPy has
 * another one. */
static struct family families[] = {
    { "OpenMP", openmp_names, TN_LOG_WARNING,
      "their threads compete, and results may be wrong; link all libraries against the same one",
      "" },
    { "BLAS", blas_names, TN_LOG_INFO, "this is correct if each was opened with RTLD_LOCAL", "" },
};

static int classify(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size, (void)user;
    const char *path = info->dlpi_name;
    if (!path || !path[0])
        return 0;
    for (int64_t f = 0; f < tn__countof(families); f++) {
        struct family *family = &families[f];
        const char *const *name = family->names, *base = strrchr(path, '/');
        base = base ? base + 1 : path;
        while (*name && !strstr(base, *name))
            name++;
        if (!*name || !strcmp(family->first, path))
            continue;
        if (!family->first[0]) {
            tn_snprint(family->first, sizeof family->first, "%s", path);
            continue;
        }
        tn_log(family->level, "two %s runtimes are in this process, %s and %s: %s", family->what,
               family->first, path, family->words);
        family->names = nothing; /* log this once only */
    }
    return 0;
}

void tn__file_check_runtimes(void)
{
    tn__plugins_lock();
    dl_iterate_phdr(classify, NULL);
    tn__plugins_unlock();
}
