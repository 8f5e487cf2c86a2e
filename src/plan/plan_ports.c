/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_ports.c - which ports of a host each of its GPUs uses: what is usable, what is near, and who shares with whom.
 * May not know devices by name, nor read anything. Called by src/api/api_ports.c when opening.
 */
#include "plan_ports.h"

#include <errno.h>
#include <string.h>

#define PLAN_PORTS_SLOW 4u /* a port below this part of the fastest near one is not for this */

const char *plan_near_name(enum plan_near near)
{
    static const char *const names[] = {"PIX", "PXB", "PHB", "NODE", "SYS"};
    return names[near];
}

const char *plan_port_why_name(enum plan_port_why why)
{
    static const char *const names[] = {
        [PLAN_PORT_USED] = "used",
        [PLAN_PORT_SPARE] = "usable, but another is nearer or enough are used",
        [PLAN_PORT_EXCLUDED] = "left out by option \"only\"",
        [PLAN_PORT_DOWN] = "not ACTIVE",
        [PLAN_PORT_LINK] = "not the link layer of most of the fastest ports",
        [PLAN_PORT_VIRTUAL] = "a virtual function on the wire of another port",
        [PLAN_PORT_SOFTWARE] = "a software device: name it in \"only\" to use it",
        [PLAN_PORT_MANAGEMENT] = "no channel adapter, or one that manages switches",
        [PLAN_PORT_SLOW] = "below a quarter of the fastest near port",
    };
    return names[why];
}

enum plan_near plan_near(const struct pcipath *a, const struct pcipath *b)
{
    unsigned same = 0;
    if (!a->hops || !b->hops)
        return PLAN_NEAR_SYS;
    while (same < a->hops && same < b->hops && a->hop[same] == b->hop[same])
        same++;
    if (same == 0)
        return a->numa == b->numa ? PLAN_NEAR_NODE : PLAN_NEAR_SYS;
    if (same == 1)
        return PLAN_NEAR_PHB; /* the host bridge alone */
    /* Below one switch: its downstream port and the function itself are each one's own. */
    return a->hops - same <= 2 && b->hops - same <= 2 ? PLAN_NEAR_PIX : PLAN_NEAR_PXB;
}

/* ---- usable ------------------------------------------------------------------------------------------------------ */

static enum plan_port_why plan_port_alone(const struct plan_port_in *p)
{
    if (p->excluded)
        return PLAN_PORT_EXCLUDED;
    if (p->management)
        return PLAN_PORT_MANAGEMENT;
    if (!p->active)
        return PLAN_PORT_DOWN;
    if (!p->link)
        return PLAN_PORT_LINK;
    return p->place->hops || p->named ? PLAN_PORT_SPARE : PLAN_PORT_SOFTWARE;
}

static bool plan_port_usable(const struct plan_ports_out *out, unsigned i)
{
    return out->why[i] == PLAN_PORT_SPARE;
}

/* A virtual function's packets leave by the wire of its physical one. */
static void plan_ports_virtual(const struct plan_ports_in *in, struct plan_ports_out *out)
{
    for (unsigned i = 0; i < in->ports; i++) {
        for (unsigned j = 0; j < in->ports && plan_port_usable(out, i) && in->port[i].physical; j++) {
            if (plan_port_usable(out, j) && pcipath_function(in->port[j].place) == in->port[i].physical)
                out->why[i] = PLAN_PORT_VIRTUAL;
        }
    }
}

static uint64_t plan_ports_fastest(const struct plan_ports_in *in, const struct plan_ports_out *out)
{
    uint64_t best = 0;
    for (unsigned i = 0; i < in->ports; i++) {
        if (plan_port_usable(out, i))
            best = max_u64(best, in->port[i].rate_bits);
    }
    return best;
}

/* The link layer of most of the fastest ports is the fabric's; of two with as many, the lower number. */
static void plan_ports_link(const struct plan_ports_in *in, struct plan_ports_out *out)
{
    uint64_t fastest = plan_ports_fastest(in, out);
    unsigned link = 0, most = 0;
    for (unsigned i = 0; i < in->ports; i++) {
        unsigned count = 0, mine = in->port[i].link;
        for (unsigned j = 0; j < in->ports; j++)
            count += plan_port_usable(out, j) && in->port[j].rate_bits == fastest && in->port[j].link == mine;
        if (count > most || (count == most && most && mine < link)) {
            most = count;
            link = mine;
        }
    }
    for (unsigned i = 0; i < in->ports; i++) {
        if (plan_port_usable(out, i) && in->port[i].link != link)
            out->why[i] = PLAN_PORT_LINK;
    }
}

/* The nearest class that a GPU has usable ports in. */
static enum plan_near plan_ports_nearest(const struct plan_ports_in *in, const struct plan_ports_out *out, unsigned g)
{
    enum plan_near best = PLAN_NEAR_SYS;
    for (unsigned i = 0; i < in->ports; i++) {
        if (plan_port_usable(out, i)) {
            enum plan_near near = plan_near(in->gpu[g], in->port[i].place);
            best = near < best ? near : best;
        }
    }
    return best;
}

/* Near is what some GPU reaches without crossing between nodes; where nothing is near, all that is usable. */
static void plan_ports_slow(const struct plan_ports_in *in, struct plan_ports_out *out)
{
    uint64_t fastest = 0;
    for (unsigned i = 0; i < in->ports; i++) {
        for (unsigned g = 0; g < in->gpus && plan_port_usable(out, i); g++) {
            if (plan_near(in->gpu[g], in->port[i].place) < PLAN_NEAR_SYS)
                fastest = max_u64(fastest, in->port[i].rate_bits);
        }
    }
    if (!fastest)
        fastest = plan_ports_fastest(in, out);
    for (unsigned i = 0; i < in->ports; i++) {
        if (plan_port_usable(out, i) && in->port[i].rate_bits < fastest / PLAN_PORTS_SLOW)
            out->why[i] = PLAN_PORT_SLOW;
    }
}

/* ---- sharing ----------------------------------------------------------------------------------------------------- */

/* GPUs that tie, and the ports on which they do. */
struct plan_tie {
    unsigned gpus, ports;
    unsigned gpu[PLAN_PORTS_GPUS];
    unsigned port[PLAN_PORTS_MAX]; /* in PCI order */
};

static bool plan_tie_has(const struct plan_ports_in *in, const struct plan_ports_out *out, unsigned g, unsigned i)
{
    bool usable = plan_port_usable(out, i) || out->why[i] == PLAN_PORT_USED;
    return usable && plan_near(in->gpu[g], in->port[i].place) == out->gpu[g].near;
}

/* The tie of GPU `first` with others not yet served, all of one class. */
static void plan_tie(const struct plan_ports_in *in, const struct plan_ports_out *out, const bool *served,
                     unsigned first, struct plan_tie *t)
{
    t->gpus = t->ports = 0;
    for (unsigned i = 0; i < in->ports; i++) {
        if (plan_tie_has(in, out, first, i))
            t->port[t->ports++] = i;
    }
    for (unsigned g = first; g < in->gpus; g++) {
        bool same = !served[g] && out->gpu[g].near == out->gpu[first].near;
        for (unsigned i = 0; i < in->ports && same; i++)
            same = plan_tie_has(in, out, g, i) == plan_tie_has(in, out, first, i);
        if (same)
            t->gpu[t->gpus++] = g;
    }
}

static void plan_ports_give(struct plan_ports_out *out, unsigned g, unsigned i)
{
    struct plan_ports_gpu *gpu = &out->gpu[g];
    if (gpu->count == PLAN_PORTS_EACH)
        return;
    gpu->port[gpu->count++] = (uint16_t)i;
    out->users[i]++;
    out->why[i] = PLAN_PORT_USED;
}

/* Ports of one card: functions of one device. */
static bool plan_same_card(const struct plan_ports_in *in, unsigned i, unsigned j)
{
    uint64_t a = pcipath_function(in->port[i].place), b = pcipath_function(in->port[j].place);
    return a && a >> 3 == b >> 3;
}

/* Whether a block that ends before place `end` of the list ends with a card. */
static bool plan_card_ends(const struct plan_ports_in *in, const unsigned *port, unsigned ports, unsigned end)
{
    return end >= ports || !plan_same_card(in, port[end - 1], port[end]);
}

/* At least as many ports as GPUs: blocks of two sizes that differ by one, in an order that keeps cards whole. */
static void plan_ports_blocks(const struct plan_ports_in *in, struct plan_ports_out *out, const struct plan_tie *t,
                              const unsigned *port, unsigned ports)
{
    if (t->gpus == 0)
        return;
    unsigned small = ports / t->gpus, big_left = ports % t->gpus, at = 0;
    for (unsigned n = 0; n < t->gpus; n++) {
        unsigned small_left = t->gpus - n - big_left;
        bool big = big_left > 0;
        if (big && small_left && !plan_card_ends(in, port, ports, at + small + 1) &&
            plan_card_ends(in, port, ports, at + small))
            big = false;
        unsigned size = small + big;
        big_left -= big;
        for (unsigned k = 0; k < size; k++)
            plan_ports_give(out, t->gpu[n], port[at + k]);
        at += size;
    }
}

/* Ports that nobody uses are divided where there are enough for all; else each GPU gets the one that fewest use. */
static void plan_ports_share(const struct plan_ports_in *in, struct plan_ports_out *out, const struct plan_tie *t)
{
    unsigned free[PLAN_PORTS_MAX], count = 0;
    for (unsigned k = 0; k < t->ports; k++) {
        if (out->users[t->port[k]] == 0)
            free[count++] = t->port[k];
    }
    if (count >= t->gpus) {
        plan_ports_blocks(in, out, t, free, count);
        return;
    }
    for (unsigned n = 0; n < t->gpus && t->ports; n++) {
        unsigned best = t->port[0];
        for (unsigned k = 1; k < t->ports; k++) {
            if (out->users[t->port[k]] < out->users[best])
                best = t->port[k];
        }
        plan_ports_give(out, t->gpu[n], best);
    }
}

int plan_ports(const struct plan_ports_in *given, struct plan_ports_out *out)
{
    static const struct pcipath nowhere = {.numa = -1};
    static const struct pcipath *const nobody[] = {&nowhere};
    struct plan_ports_in in = *given;
    bool served[PLAN_PORTS_GPUS] = {false};
    struct plan_tie tie;
    if (in.ports > PLAN_PORTS_MAX || in.gpus > PLAN_PORTS_GPUS)
        return -E2BIG;
    memset(out, 0, sizeof(*out));
    if (!in.gpus) {
        in.gpu = nobody;
        in.gpus = 1;
    }
    for (unsigned i = 0; i < in.ports; i++)
        out->why[i] = plan_port_alone(&in.port[i]);
    plan_ports_virtual(&in, out);
    plan_ports_link(&in, out);
    plan_ports_slow(&in, out);
    for (unsigned g = 0; g < in.gpus; g++)
        out->gpu[g].near = plan_ports_nearest(&in, out, g);
    for (enum plan_near near = PLAN_NEAR_PIX; near <= PLAN_NEAR_SYS; near++) {
        for (unsigned g = 0; g < in.gpus; g++) {
            if (served[g] || out->gpu[g].near != near)
                continue;
            plan_tie(&in, out, served, g, &tie);
            plan_ports_share(&in, out, &tie);
            for (unsigned n = 0; n < tie.gpus; n++)
                served[tie.gpu[n]] = true;
        }
    }
    return 0;
}
