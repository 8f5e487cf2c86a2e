/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_view.c - a fabric of real time from outside: what its ports are and have carried, and changes to them, without being a
 * member. Called through emu_sim_api; next: emu_meet.c.
 */
#include "emu_meet.h"
#include "emu_lag.h"
#include "emu_sim.h"
#include "emu_topo.h"
#include "emu_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/** Fills in what the SPEC says of port i; counters are 0. */
static void emu_view_port(const struct emu_fabric *f, int i, struct emu_real_port *out)
{
    const struct emu_dev *d = &f->devs[i];

    *out = (struct emu_real_port){
        .rate_bits = d->port.rate_bits * (uint64_t)f->spec.wires, .guid = d->guid, .up = 1, .wires = f->spec.wires};
    out->gpu = i % f->per_host / f->spec.ports;
    out->near_gpu = emu_topo_pairs(&f->spec, d->host) ? out->gpu & ~1 : out->gpu;
    snprintf(out->host, sizeof(out->host), "h%d", d->host);
    snprintf(out->port, sizeof(out->port), "%.48s:1", d->ibv.name);
    memcpy(out->gid, d->port.gid.raw, sizeof(out->gid));
}

/** What the wires of the dev-th device have carried together, and the mean of what is left of their rates. */
static void emu_view_shared(const struct emu_meet *m, const struct emu_spec *s, int dev, struct emu_real_port *out)
{
    uint64_t c[EMU_MEET_COUNTERS] = {0};

    out->up = 0;
    out->slow = 0;
    for (int w = 0; w < s->wires; w++) {
        const struct emu_meet_port *p = &m->port[emu_lag_index(s, dev, w)];

        for (int k = 0; k < EMU_MEET_COUNTERS; k++)
            c[k] += __atomic_load_n(&p->count[k], __ATOMIC_RELAXED);
        out->up |= !p->down;
        out->slow += p->slow / s->wires;
    }
    out->tx_payload = c[EMU_COUNT_TX];
    out->rx_payload = c[EMU_COUNT_RX];
    out->wire_tx = c[EMU_COUNT_WIRE_TX];
    out->wire_rx = c[EMU_COUNT_WIRE_RX];
    out->lost = c[EMU_COUNT_LOST];
    out->dropped = c[EMU_COUNT_DROPPED];
}

/** The ports that are there, in order; m NULL: before anything has happened. Returns how many. */
static int emu_view_all(const struct emu_spec *spec, const struct emu_meet *m, struct emu_real_port *out, int max)
{
    struct emu_fabric f = {.spec = *spec};
    int n = emu_fabric_init(&f) ? -ENOMEM : 0;

    for (int i = 0; n >= 0 && i < f.n_devs; i++) {
        if (!f.devs[i].exists)
            continue;
        if (n < max) {
            emu_view_port(&f, i, &out[n]);
            if (m)
                emu_view_shared(m, spec, i, &out[n]);
        }
        n++;
    }
    emu_fabric_fini(&f);
    return n;
}

int emu_view_name(const char *fabric, char out[24], char *why, size_t why_len)
{
    struct emu_spec spec;
    int rc = emu_spec_parse(fabric, &spec, why, why_len);
    char *text = rc ? NULL : emu_spec_print(&spec);

    if (rc)
        return rc;
    if (!text)
        return -ENOMEM;
    emu_meet_own_name(text, out);
    free(text);
    return 0;
}

int emu_view_spec_ports(const char *fabric, struct emu_real_port *out, int max, char *why, size_t why_len)
{
    struct emu_spec spec;
    int rc = emu_spec_parse(fabric, &spec, why, why_len);

    return rc ? rc : emu_view_all(&spec, NULL, out, max);
}

int emu_view_real_ports(const char *name, struct emu_real_port *out, int max, char *why, size_t why_len)
{
    struct emu_spec spec;
    struct emu_meet m;
    int rc = emu_meet_visit(&m, name, why, why_len);

    if (rc)
        return rc;
    rc = emu_spec_parse(m.page->spec, &spec, why, why_len);
    if (rc == 0)
        rc = emu_view_all(&spec, &m, out, max);
    emu_meet_leave(&m);
    return rc;
}

int emu_view_real_ctl(const char *name, const char *command, char *why, size_t why_len)
{
    struct emu_change c;
    struct emu_spec spec;
    struct emu_meet m;
    int rc = emu_meet_visit(&m, name, why, why_len);

    if (rc)
        return rc;
    rc = emu_spec_parse(m.page->spec, &spec, why, why_len);
    if (rc == 0)
        rc = emu_fabric_command(&spec, command, &c, why, why_len);
    if (rc == 0)
        emu_meet_change(&m, &spec, &c);
    emu_meet_leave(&m);
    return rc;
}
