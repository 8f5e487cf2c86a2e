/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_got.c - emulated devices are not in the real /sys (in virtual time, where all emulated hosts are one process, in none at all). Plugins that ask there where
 * a device sits get an answer from here: their reference to realpath() is turned to a function that knows emulated devices. Only the
 * plugin that is named is touched. Called by host_open.c; next: what ld.so left of the file's relocations.
 */
#include "host_int.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/** As realpath(3), but an RDMA device that /sys does not know is a PCI function of real depth. */
static char *host_realpath(const char *path, char *resolved)
{
    static const char below[] = "/sys/class/infiniband/";
    char *found = realpath(path, resolved), *room = resolved ? resolved : malloc(PATH_MAX);
    unsigned number = 0;
    const char *digits;

    if (found || strncmp(path, below, sizeof(below) - 1) != 0) {
        if (!resolved)
            free(room);
        return found;
    }
    digits = strpbrk(path + sizeof(below) - 1, "0123456789");
    digits = digits && strchr(digits, '_') ? strchr(digits, '_') + 1 : digits;
    if (digits)
        number = (unsigned)strtoul(digits, NULL, 10);
    if (room)
        snprintf(room, PATH_MAX, "/sys/devices/pci0000:b0/0000:b0:01.0/0000:b1:00.0/0000:b2:%02x.0/0000:b3:%02x.%u",
                 1 + number / 8, number / 8, number % 8);
    return room;
}

/** What ld.so noted of a file, as far as it is wanted here. */
struct host_dynamic {
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * rela[2];
    size_t count[2];
};

/** An address in the dynamic section: some loaders leave it relative. */
static const void *host_got_at(const struct link_map *map, ElfW(Addr) v)
{
    return (const void *)(v < map->l_addr ? map->l_addr + v : v);
}

static void host_got_read(const struct link_map *map, struct host_dynamic *d)
{
    for (const ElfW(Dyn) *e = map->l_ld; e->d_tag != DT_NULL; e++) {
        if (e->d_tag == DT_SYMTAB)
            d->symbols = host_got_at(map, e->d_un.d_ptr);
        else if (e->d_tag == DT_STRTAB)
            d->strings = host_got_at(map, e->d_un.d_ptr);
        else if (e->d_tag == DT_RELA)
            d->rela[0] = host_got_at(map, e->d_un.d_ptr);
        else if (e->d_tag == DT_RELASZ)
            d->count[0] = e->d_un.d_val / sizeof(ElfW(Rela));
        else if (e->d_tag == DT_JMPREL)
            d->rela[1] = host_got_at(map, e->d_un.d_ptr);
        else if (e->d_tag == DT_PLTRELSZ)
            d->count[1] = e->d_un.d_val / sizeof(ElfW(Rela));
    }
}

/** Writes a pointer where it may be read-only by now. */
static int host_got_write(void *at, const void *value, size_t len)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)at & ~(page - 1);

    if (mprotect((void *)from, page, PROT_READ | PROT_WRITE))
        return -errno;
    memcpy(at, value, len);
    return 0;
}

int host_got_redirect(void *lib)
{
    char *(*to)(const char *, char *) = host_realpath;
    struct host_dynamic d = {0};
    struct link_map *map;
    int rc = 0;

    if (dlinfo(lib, RTLD_DI_LINKMAP, &map))
        return -ENOEXEC;
    host_got_read(map, &d);
    if (!d.symbols || !d.strings)
        return -ENOEXEC;
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; rc == 0 && d.rela[k] && i < d.count[k]; i++) {
            const ElfW(Rela) *r = &d.rela[k][i];
            unsigned long type = ELF64_R_TYPE(r->r_info);
            const char *name = d.strings + d.symbols[ELF64_R_SYM(r->r_info)].st_name;

            if ((type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT) && strcmp(name, "realpath") == 0)
                rc = host_got_write((void *)(map->l_addr + r->r_offset), &to, sizeof(to));
        }
    }
    return rc;
}
