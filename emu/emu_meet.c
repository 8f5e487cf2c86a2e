/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_meet.c - joins, visits and leaves a fabric in shared memory. Byte 0 of the object is locked while somebody joins or
 * leaves, byte 1 + i as long as member i lives. Locks of fcntl(2) belong to a process and not to a descriptor: a forked child
 * holds none of them, and this process must never close a second descriptor of the object.
 * Called by emu_real.c and emu_real_ctl.c; next: emu_ring.c for what passes through.
 */
#include "emu_meet.h"
#include "emu_lag.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const char emu_meet_magic[8] = "braid-1";
static const char emu_meet_folder[] = "/dev/shm";

uint64_t emu_meet_time(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- locks ------------------------------------------------------------------------------------------------------------ */

static int emu_meet_lock(int fd, int byte, short type, bool wait)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    while (fcntl(fd, wait ? F_SETLKW : F_SETLK, &l) != 0) {
        if (errno != EINTR)
            return -errno;
    }
    return 0;
}

static bool emu_meet_held(int fd, int byte)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    return fcntl(fd, F_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

bool emu_meet_alive(const struct emu_meet *m, int member)
{
    return member == m->self || emu_meet_held(m->fd, 1 + member);
}

/** Whether any process but this one is a member. */
static bool emu_meet_others(int fd)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = EMU_MEET_MEMBERS};

    return fcntl(fd, F_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

/* ---- the object -------------------------------------------------------------------------------------------------------- */

static size_t emu_meet_page_up(size_t n)
{
    return (n + 4095) & ~(size_t)4095;
}

static size_t emu_meet_ports_at(void)
{
    return emu_meet_page_up(sizeof(struct emu_meet_page));
}

static size_t emu_meet_rings_at(const struct emu_spec *s)
{
    size_t n = (size_t)emu_lag_wires(s);

    return emu_meet_ports_at() + emu_meet_page_up(n * sizeof(struct emu_meet_port));
}

static size_t emu_meet_size(const struct emu_spec *s)
{
    return emu_meet_rings_at(s) + sizeof(struct emu_ring) * EMU_MEET_MEMBERS * EMU_MEET_MEMBERS;
}

static void emu_meet_prefix(char *out, size_t len)
{
    snprintf(out, len, "braid-emu.%u.", (unsigned)geteuid());
}

void emu_meet_own_name(const char *spec, char out[24])
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */

    for (const char *p = spec; *p; p++)
        h = (h ^ (unsigned char)*p) * 1099511628211u;
    snprintf(out, 24, "%016llx", (unsigned long long)h);
}

/** "/dev/shm/braid-emu.UID.NAME" */
static int emu_meet_path(struct emu_meet *m, const char *name, const char *spec, char *why, size_t why_len)
{
    char own[24];

    emu_meet_own_name(spec ? spec : "", own);
    if (!name)
        name = own;
    if (!*name || strlen(name) > EMU_MEET_NAME || strchr(name, '/')) {
        snprintf(why, why_len, "emu: seen fabric name '%.60s', expected 1 to %d characters without '/'", name,
                 EMU_MEET_NAME);
        return -EINVAL;
    }
    snprintf(m->path, sizeof(m->path), "%s/braid-emu.%u.%s", emu_meet_folder, (unsigned)geteuid(), name);
    return 0;
}

/** Opens the object and locks byte 0. It must be ours alone, and still have its name. -ESTALE: try again. */
static int emu_meet_open(struct emu_meet *m, bool create)
{
    struct stat st;
    int rc = 0;

    if (create) {
        m->fd = open(m->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (m->fd < 0 && errno != EEXIST)
            return -errno;
    }
    if (m->fd < 0)
        m->fd = open(m->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (m->fd < 0)
        return create && errno == ENOENT ? -ESTALE : -errno;
    rc = emu_meet_lock(m->fd, 0, F_WRLCK, true);
    if (rc == 0 && fstat(m->fd, &st) != 0)
        rc = -errno;
    if (rc == 0 && st.st_nlink == 0)
        rc = -ESTALE; /* its last member has just left */
    else if (rc == 0 && (st.st_uid != geteuid() || !S_ISREG(st.st_mode) || (st.st_mode & 077)))
        rc = -EPERM;
    if (rc) {
        close(m->fd);
        m->fd = -1;
    }
    return rc;
}

static int emu_meet_open_retry(struct emu_meet *m, bool create, char *why, size_t why_len)
{
    int rc;

    do
        rc = emu_meet_open(m, create);
    while (rc == -ESTALE);
    if (rc)
        snprintf(why, why_len, "emu: %s: %s%s", m->path, strerror(-rc),
                 rc == -EPERM ? "; expected a file of this user alone, mode 0600" : "");
    return rc;
}

static int emu_meet_map(struct emu_meet *m, size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, m->fd, 0);

    if (at == MAP_FAILED)
        return -errno;
    m->bytes = bytes;
    m->page = at;
    return 0;
}

static void emu_meet_layout(struct emu_meet *m, const struct emu_spec *spec)
{
    m->port = (struct emu_meet_port *)(void *)((char *)m->page + emu_meet_ports_at());
    m->ring = (struct emu_ring *)(void *)((char *)m->page + emu_meet_rings_at(spec));
}

/** A fresh object, all zero but for what is written here; the magic last. */
static int emu_meet_create(struct emu_meet *m, const struct emu_spec *spec, const char *text)
{
    int rc;

    if (ftruncate(m->fd, 0) != 0 || ftruncate(m->fd, (off_t)emu_meet_size(spec)) != 0)
        return -errno;
    rc = emu_meet_map(m, emu_meet_size(spec));
    if (rc)
        return rc;
    m->page->bytes = m->bytes;
    m->page->started = emu_meet_time();
    snprintf(m->page->spec, sizeof(m->page->spec), "%s", text);
    emu_meet_layout(m, spec);
    for (int i = 0; i < emu_lag_wires(spec); i++) {
        m->port[i].slow = 1;
        m->port[i].loss = spec->loss;
    }
    memcpy(m->page->magic, emu_meet_magic, sizeof(emu_meet_magic));
    return 0;
}

/** An object with live members. */
static int emu_meet_attach(struct emu_meet *m, const struct emu_spec *spec, const char *text, char *why, size_t why_len)
{
    int rc = emu_meet_map(m, emu_meet_size(spec));

    if (rc)
        return rc;
    if (memcmp(m->page->magic, emu_meet_magic, sizeof(emu_meet_magic)) != 0 || m->page->bytes != m->bytes ||
        strcmp(m->page->spec, text) != 0) {
        snprintf(why, why_len, "emu: %s is there with fabric \"%.200s\", expected \"%.200s\": give it another name",
                 m->path, m->page->spec, text);
        return -EEXIST;
    }
    return 0;
}

/** Takes the first member's place that no living process has. */
static int emu_meet_enter(struct emu_meet *m, int host)
{
    for (int i = 0; i < EMU_MEET_MEMBERS; i++) {
        struct emu_meet_member *member = &m->page->member[i];

        if (emu_meet_lock(m->fd, 1 + i, F_WRLCK, false) != 0)
            continue;
        m->self = i;
        for (int from = 0; from < EMU_MEET_MEMBERS; from++) { /* what was sent to whoever had the place before */
            if (member->pid)
                emu_ring_clear(&m->ring[from * EMU_MEET_MEMBERS + i]);
        }
        __atomic_store_n(&member->pending, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&member->asleep, 0, __ATOMIC_RELAXED);
        member->pid = (int32_t)getpid();
        member->host = host;
        return 0;
    }
    return -EUSERS;
}

int emu_meet_join(struct emu_meet *m, const char *name, const struct emu_spec *spec, int host, char *why,
                  size_t why_len)
{
    char *text = emu_spec_print(spec);
    int rc = -ENOMEM;

    *m = (struct emu_meet){.fd = -1, .self = -1};
    if (!text || strlen(text) >= EMU_MEET_SPEC)
        goto out;
    rc = emu_meet_path(m, name, text, why, why_len);
    if (rc)
        goto out;
    emu_meet_sweep();
    rc = emu_meet_open_retry(m, true, why, why_len);
    if (rc)
        goto out;
    snprintf(why, why_len, "emu: cannot join %s", m->path);
    rc = emu_meet_others(m->fd) ? emu_meet_attach(m, spec, text, why, why_len) : emu_meet_create(m, spec, text);
    if (rc == 0) {
        emu_meet_layout(m, spec);
        rc = emu_meet_enter(m, host);
    }
    if (rc) {
        if (m->page)
            munmap(m->page, m->bytes);
        close(m->fd); /* its locks too */
        *m = (struct emu_meet){.fd = -1, .self = -1};
    } else {
        emu_meet_lock(m->fd, 0, F_UNLCK, true);
    }
out:
    free(text);
    return rc;
}

/** The path of this user's only fabric. */
static int emu_meet_only(struct emu_meet *m, char *why, size_t why_len)
{
    DIR *d;
    struct dirent *e;
    char prefix[32];
    int n = 0;

    emu_meet_sweep();
    emu_meet_prefix(prefix, sizeof(prefix));
    d = opendir(emu_meet_folder);
    while (d && (e = readdir(d))) {
        if (strncmp(e->d_name, prefix, strlen(prefix)) == 0 && n++ == 0)
            snprintf(m->path, sizeof(m->path), "%s/%.90s", emu_meet_folder, e->d_name);
    }
    if (d)
        closedir(d);
    if (n == 1)
        return 0;
    snprintf(why, why_len, "emu: seen %d fabrics of this user, expected one: %s", n,
             n ? "say which by its name" : "no process is in any");
    return n ? -EINVAL : -ENOENT;
}

int emu_meet_visit(struct emu_meet *m, const char *name, char *why, size_t why_len)
{
    struct emu_spec spec;
    struct stat st;
    int rc;

    *m = (struct emu_meet){.fd = -1, .self = -1};
    rc = name ? emu_meet_path(m, name, NULL, why, why_len) : emu_meet_only(m, why, why_len);
    if (rc == 0)
        rc = emu_meet_open_retry(m, false, why, why_len);
    if (rc)
        return rc;
    if (!emu_meet_others(m->fd) || fstat(m->fd, &st) != 0 || st.st_size < (off_t)sizeof(struct emu_meet_page)) {
        snprintf(why, why_len, "emu: %s: no process is in this fabric", m->path);
        rc = -ENOENT;
    }
    if (rc == 0)
        rc = emu_meet_map(m, (size_t)st.st_size);
    if (rc == 0)
        rc = emu_spec_parse(m->page->spec, &spec, why, why_len);
    if (rc == 0)
        emu_meet_layout(m, &spec);
    emu_meet_lock(m->fd, 0, F_UNLCK, true);
    if (rc)
        emu_meet_leave(m);
    return rc;
}

void emu_meet_depart(struct emu_meet *m)
{
    if (m->fd < 0)
        return;
    if (m->self >= 0) {
        emu_meet_lock(m->fd, 0, F_WRLCK, true);
        if (!emu_meet_others(m->fd))
            unlink(m->path);
    }
    close(m->fd); /* all locks of this process with it */
    m->fd = -1;
}

void emu_meet_leave(struct emu_meet *m)
{
    emu_meet_depart(m);
    emu_meet_forget(m);
}

void emu_meet_forget(struct emu_meet *m)
{
    if (m->page)
        munmap(m->page, m->bytes);
    if (m->fd >= 0)
        close(m->fd);
    *m = (struct emu_meet){.fd = -1, .self = -1};
}

/** Removes the object if no process is in it. One that is being joined is left alone. */
static void emu_meet_sweep_one(int folder, const char *name)
{
    int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return;
    if (emu_meet_lock(fd, 0, F_WRLCK, false) == 0 && !emu_meet_others(fd) && fstat(fd, &st) == 0 && st.st_nlink)
        unlinkat(folder, name, 0);
    close(fd);
}

void emu_meet_sweep(void)
{
    DIR *d = opendir(emu_meet_folder);
    struct dirent *e;
    char prefix[32];

    emu_meet_prefix(prefix, sizeof(prefix));
    while (d && (e = readdir(d))) {
        if (strncmp(e->d_name, prefix, strlen(prefix)) == 0)
            emu_meet_sweep_one(dirfd(d), e->d_name);
    }
    if (d)
        closedir(d);
}

/* ---- in a fabric --------------------------------------------------------------------------------------------------------- */

void emu_meet_ring(struct emu_meet *m, int member, bool anyway)
{
    struct emu_meet_member *to = &m->page->member[member];

    /* Only who finds it asleep wakes it; it says so anew before it looks. */
    if (!__atomic_load_n(&to->asleep, __ATOMIC_SEQ_CST) || !__atomic_exchange_n(&to->asleep, 0, __ATOMIC_SEQ_CST)) {
        if (!anyway)
            return;
    }
    __atomic_fetch_add(&to->doorbell, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &to->doorbell, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

uint64_t emu_meet_reserve(uint64_t *free_at, uint64_t start, uint64_t time, uint64_t floor)
{
    uint64_t old = __atomic_load_n(free_at, __ATOMIC_RELAXED), end;

    do {
        end = (old > start ? old : start) + time;
        end = end > floor ? end : floor;
    } while (!__atomic_compare_exchange_n(free_at, &old, end, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return end;
}

static void emu_meet_change_wire(struct emu_meet *m, struct emu_meet_port *p, const struct emu_change *c)
{
    switch (c->kind) {
    case EMU_CHANGE_DOWN:
        p->down = 1;
        break;
    case EMU_CHANGE_UP:
        p->down = p->stalled = 0;
        break;
    case EMU_CHANGE_STALL:
        p->stalled = 1;
        break;
    case EMU_CHANGE_SLOW:
        p->slow = c->value;
        break;
    case EMU_CHANGE_LOSS:
        p->loss = c->value;
        break;
    case EMU_CHANGE_DELAY:
        p->delay_ns = (uint64_t)c->value;
        break;
    }
    __atomic_fetch_add(&p->changed, 1, __ATOMIC_RELEASE);
    __atomic_fetch_add(&m->page->changed, 1, __ATOMIC_RELEASE);
}

void emu_meet_change(struct emu_meet *m, const struct emu_spec *s, const struct emu_change *c)
{
    int dev = c->port.host * s->gpus * s->ports + c->port.dev;

    emu_meet_lock(m->fd, 0, F_WRLCK, true);
    for (int w = 0; w < s->wires; w++) {
        if (!c->port.wire || c->port.wire == w + 1)
            emu_meet_change_wire(m, &m->port[emu_lag_index(s, dev, w)], c);
    }
    emu_meet_lock(m->fd, 0, F_UNLCK, true);
    for (int i = 0; i < EMU_MEET_MEMBERS; i++)
        emu_meet_ring(m, i, true);
}
