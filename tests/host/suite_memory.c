/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite_memory.c - registrations that come and go while requests are under way; the end, and another beginning; what a plugin has
 * to refuse. Called by suite.c's list; next: host_mini.h.
 */
#include "suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void suite_buffers(struct suite *s)
{
    enum { COUNT = 20, LEN = 70000 };
    unsigned char *buffer[COUNT];
    int to = (s->me + 1) % s->n, from = (s->me + s->n - 1) % s->n;

    suite_meet(s);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            buffer[i] = aligned_alloc(4096, 73728);
            suite_ok(s, host_register(s->h, buffer[i], LEN) == 0, "register");
            suite_fill(buffer[i], LEN, i * 7 + (uint64_t)s->me + (uint64_t)round);
            suite_ok(s, host_put(s->h, to, SUITE_IN + (size_t)s->me * SUITE_AREA + i * LEN, buffer[i], LEN) == 0,
                     "put");
            suite_step(s); /* the proxy posts while more is registered */
        }
        suite_meet(s);
        for (size_t i = 0; i < COUNT; i++) {
            suite_ok(s,
                     suite_wrong(s->heap + SUITE_IN + (size_t)from * SUITE_AREA + i * LEN, LEN,
                                 i * 7 + (uint64_t)from + (uint64_t)round) == 0,
                     "bytes of buffer %zu", i);
            memset(buffer[i], 0, LEN);
            suite_ok(s, host_get(s->h, to, buffer[i], SUITE_IN + (size_t)s->me * SUITE_AREA + i * LEN, LEN) == 0,
                     "get");
        }
        suite_ok(s, host_quiet(s->h) == 0, "quiet");
        for (size_t i = 0; i < COUNT; i++) {
            suite_ok(s, suite_wrong(buffer[i], LEN, i * 7 + (uint64_t)s->me + (uint64_t)round) == 0,
                     "got into buffer %zu", i);
            suite_ok(s, host_unregister(s->h, buffer[i]) == 0, "unregister");
            free(buffer[i]);
        }
        suite_meet(s);
    }
}

void suite_growth(struct suite *s)
{
    size_t more = 1 << 20, word = suite_word_of(s->me, 7);
    int to = (s->me + 1) % s->n, from = (s->me + s->n - 1) % s->n;
    struct host_amo add = {.op = NVS_AMO_SIGNAL_ADD, .bytes = 8, .value = 1};

    memset(s->heap + suite_word_of(from, 7), 0, 8);
    suite_meet(s);
    for (uint64_t round = 0; round < 3; round++) {
        size_t new_at = SUITE_USED + round * more;

        suite_fill(s->heap + SUITE_SRC, more, round * 3 + (uint64_t)s->me);
        suite_ok(s, host_put(s->h, to, SUITE_IN + (size_t)s->me * SUITE_AREA, s->heap + SUITE_SRC, more) == 0, "put");
        suite_step(s); /* under way now */
        suite_ok(s, host_grow(s->h, more) == 0, "the heap grows");
        suite_ok(s, host_put(s->h, to, new_at, s->heap + SUITE_SRC, more) == 0, "put to new memory");
        suite_ok(s, host_fence(s->h) == 0 && host_amo(s->h, to, word, &add, 0) == 0, "signal");
        if (suite_until(s, suite_word_of(from, 7), round + 1)) {
            suite_ok(s, suite_wrong(s->heap + new_at, more, round * 3 + (uint64_t)from) == 0, "new memory, round %d",
                     (int)round);
            suite_ok(s,
                     suite_wrong(s->heap + SUITE_IN + (size_t)from * SUITE_AREA, more, round * 3 + (uint64_t)from) == 0,
                     "old memory, round %d", (int)round);
        }
        suite_meet(s);
    }
    for (int round = 0; round < 3; round++) {
        suite_ok(s, host_shrink(s->h) == 0, "the heap shrinks");
        suite_meet(s);
    }
}

/** A chunk of the heap that is a second mapping of memory: the plugin may have to pin it by the first one's address. */
void suite_aliases(struct suite *s)
{
    size_t len = 1 << 20;
    int fd = memfd_create("suite", MFD_CLOEXEC), to = (s->me + 1) % s->n, from = (s->me + s->n - 1) % s->n;
    unsigned char *at = s->heap + SUITE_USED, *other;

    if (!suite_ok(s, fd >= 0 && ftruncate(fd, (off_t)len) == 0, "memory"))
        return;
    other = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    suite_ok(s, mmap(at, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == at, "a second mapping");
    close(fd);
    suite_ok(s, host_alias(s->h, at, other) == 0, "alias");
    suite_ok(s, host_grow(s->h, len) == 0, "the heap grows by it");
    suite_fill(s->heap + SUITE_SRC, len, (uint64_t)s->me + 5);
    suite_meet(s);
    suite_ok(s, host_put(s->h, to, SUITE_USED, s->heap + SUITE_SRC, len) == 0, "put");
    suite_meet(s);
    suite_ok(s, suite_wrong(other, len, (uint64_t)from + 5) == 0, "put into it");
    memset(s->heap + SUITE_SRC, 0, len);
    suite_ok(s, host_get(s->h, to, s->heap + SUITE_SRC, SUITE_USED, len) == 0, "get");
    suite_meet(s);
    suite_ok(s, suite_wrong(s->heap + SUITE_SRC, len, (uint64_t)s->me + 5) == 0, "got out of it");
    suite_ok(s, host_shrink(s->h) == 0, "and back");
    suite_meet(s);
    suite_ok(s, mmap(at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at,
             "plain memory again");
    munmap(other, len);
}

void suite_again(struct suite *s)
{
    char why[512];

    for (int i = 0; i < 2; i++) {
        suite_meet(s);
        suite_ok(s, host_close(s->h) == 0, "finalize");
        s->h = NULL;
        s->w.barrier(s->w.arg);
        if (!suite_ok(s, suite_open(s, why, sizeof(why)) == 0, "another start: %s", why))
            return;
        suite_signal_add(s);
    }
}

/** Runs on every PE at once, without meetings: whoever is refused has nobody to meet. */
void suite_refusals(struct suite *s)
{
    struct host_options o = s->o;
    struct host *h = NULL;
    char why[512] = "";
    int rc;

    suite_meet(s);
    for (int i = 0; i < NVS_VERSIONS; i++) {
        if (nvs_version_at(i)->major == s->o.version->major)
            continue;
        o.version = nvs_version_at(i);
        rc = host_open(&o, &s->w, &h, why, sizeof(why));
        suite_ok(s, rc == -ELIBBAD, "a host of version %s was not refused: %d", o.version->name, rc);
    }
    o.version = s->o.version;
    /* The PEs of virtual time share an environment. */
    s->w.barrier(s->w.arg);
    suite_ports("nosuch_0:1");
    s->w.barrier(s->w.arg);
    rc = host_open(&o, &s->w, &h, why, sizeof(why));
    suite_ok(s, rc != 0, "a device that is not there was not refused");
    s->w.barrier(s->w.arg);
    suite_ports(s->ports);
    suite_meet(s);
}
