/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_pages.c - whether a device could pin memory: every page mapped and, for what it may write, writable. Where it is
 * not, ibv_reg_mr(3) fails with EFAULT. Called by emu_mr.c; next: the kernel.
 */
#include "emu.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EMU_PAGE = 4096, EMU_PAGES_PROBED = 32, EMU_PAGES_AT_ONCE = 1024 };

static bool emu_pages_mapped(uintptr_t at, uintptr_t end)
{
    unsigned char there[EMU_PAGES_AT_ONCE];

    for (; at < end; at += (uintptr_t)EMU_PAGE * EMU_PAGES_AT_ONCE) {
        size_t most = (size_t)EMU_PAGE * EMU_PAGES_AT_ONCE, part = end - at < most ? end - at : most;

        if (mincore((void *)at, part, there) != 0)
            return false;
    }
    return true;
}

/**
 * Whether the kernel can write to each page: it adds 0 to a word of it, which changes nothing, whoever else uses it. Only
 * for a few pages: each becomes real memory.
 */
static bool emu_pages_take_writes(uintptr_t at, uintptr_t end)
{
    uint32_t nobody = 0;

    for (; at < end; at += EMU_PAGE) {
        if (syscall(SYS_futex, &nobody, FUTEX_WAKE_OP_PRIVATE, 0, NULL, (void *)at,
                    FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0)) < 0 &&
            errno == EFAULT)
            return false;
    }
    return true;
}

/** The kernel's own list of what is mapped, and how: "7f00-7f10 rw-p ...". True also where there is no such list: nothing
 *  can be said. */
static bool emu_pages_listed(uintptr_t at, uintptr_t end, bool write)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char line[8192], *p;

    if (!f)
        return true;
    while (at < end && fgets(line, sizeof(line), f)) {
        uintptr_t low = strtoul(line, &p, 16), high = *p == '-' ? strtoul(p + 1, &p, 16) : 0;

        if (high <= at)
            continue;
        if (low > at || p[1] != 'r' || (write && p[2] != 'w'))
            break;
        at = high;
    }
    fclose(f);
    return at >= end;
}

bool emu_pages_ok(const void *addr, size_t len, bool write)
{
    uintptr_t at = (uintptr_t)addr & ~(uintptr_t)(EMU_PAGE - 1), end = (uintptr_t)addr + len;

    if (!emu_pages_mapped(at, end))
        return false;
    if (write && end - at <= (uintptr_t)EMU_PAGE * EMU_PAGES_PROBED)
        return emu_pages_take_writes(at, end);
    return emu_pages_listed(at, end, write);
}
