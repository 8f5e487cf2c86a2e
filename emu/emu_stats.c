/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_stats.c - what the engine of a process in real time does with its time, on stderr, for who asks by BRAID_EMU_STATS: a line
 * at the end, and one every so many seconds where its value is a number. Each says what came since the one before. With the
 * fabric's lock. Called by emu_real.c; next: emu_copy.c for what copies took.
 */
#include "emu_copy.h"
#include "emu_real.h"

#include <stdio.h>
#include <stdlib.h>

/** Payload that all ports of this process have sent or received. */
static uint64_t emu_stats_payload(const struct emu_real *r, bool sent)
{
    uint64_t bytes = 0;

    for (int i = 0; i < r->fabric.n_devs; i++)
        bytes += sent ? r->fabric.devs[i].port.tx_payload : r->fabric.devs[i].port.rx_payload;
    return bytes;
}

void emu_stats_begin(struct emu_real *r)
{
    const char *text = getenv("BRAID_EMU_STATS");
    double seconds = text ? strtod(text, NULL) : 0;

    r->stats.on = text != NULL;
    r->stats.every_ns = seconds > 0 && seconds < 1e9 ? (uint64_t)(seconds * 1e9) : UINT64_MAX;
    r->stats.told = emu_meet_time();
}

void emu_stats_tell(struct emu_real *r)
{
    struct emu_stats *s = &r->stats;
    const struct emu_copy_stats *c = emu_copy_stats(), was = s->copies_told;
    uint64_t now = emu_meet_time(), sent = emu_stats_payload(r, true), got = emu_stats_payload(r, false);

    if (!s->on)
        return;
    fprintf(
        stderr,
        "emu: %.2f s: engine %.2f s in %llu passes, of them copies %.2f s; sent %.1f MB, got %.1f MB; to GPUs %llu copies "
        "%.1f MB (%.3f s), %llu waits (%.3f s); from GPUs %llu copies %.1f MB, %llu waits (%.3f s)\n",
        (double)(now - s->told) / 1e9, (double)(s->busy_ns - s->busy_told) / 1e9,
        (unsigned long long)(s->passes - s->passes_told),
        (double)(c->write_ns + c->wait_ns + c->read_ns - was.write_ns - was.wait_ns - was.read_ns) / 1e9,
        (double)(sent - s->sent_told) / 1e6, (double)(got - s->got_told) / 1e6,
        (unsigned long long)(c->writes - was.writes), (double)(c->write_bytes - was.write_bytes) / 1e6,
        (double)(c->write_ns - was.write_ns) / 1e9, (unsigned long long)(c->waits - was.waits),
        (double)(c->wait_ns - was.wait_ns) / 1e9, (unsigned long long)(c->reads - was.reads),
        (double)(c->read_bytes - was.read_bytes) / 1e6, (unsigned long long)(c->read_waits - was.read_waits),
        (double)(c->read_ns - was.read_ns) / 1e9);
    s->told = now;
    s->busy_told = s->busy_ns;
    s->passes_told = s->passes;
    s->sent_told = sent;
    s->got_told = got;
    s->copies_told = *c;
}

void emu_stats_pass(struct emu_real *r, uint64_t began, uint64_t end)
{
    r->stats.passes++;
    r->stats.busy_ns += end - began;
    if (end - r->stats.told > r->stats.every_ns)
        emu_stats_tell(r);
}
