/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plan_ports.c - plan_ports() over synthetic machines of all shapes: what it promises is checked by other means than its own. A
 * failure prints the seed; `unit_plan_ports SEED` runs that one machine.
 */
#include "unit.h"

#include "plan_ports.h"

#include <stdlib.h>
#include <string.h>

#define MACHINES 100000u

static uint64_t rng;

static unsigned draw(unsigned below)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (unsigned)((rng >> 11) % below);
}

/* ---- a machine -------------------------------------------------------------------------------------------------------- */

static struct topo_host host, other;
static struct plan_ports_out plan, again;
static unsigned next_bus;

static int bridge(struct topo_host *h, int parent, int numa)
{
    int node = topo_pci_add(h, parent < 0 ? PCI_BRIDGE | next_bus << 8 : next_bus << 8, parent);
    next_bus++;
    h->pci[node].numa = numa;
    return node;
}

/* Host bridges and switches, one or two deep; places[] are what devices can be plugged into. */
static unsigned make_tree(struct topo_host *h, int places[64])
{
    unsigned count = 0, nodes = 1 + draw(4), switches = draw(3), deep = draw(3);
    for (unsigned numa = 0; numa < nodes; numa++) {
        for (unsigned b = 0, bridges = 1 + draw(3); b < bridges && count < 48; b++) {
            int root = bridge(h, -1, nodes > 1 ? (int)numa : -1);
            places[count++] = root;
            for (unsigned s = 0; s < switches; s++) {
                int up = bridge(h, bridge(h, root, (int)numa), (int)numa);
                places[count++] = up;
                if (deep == 1)
                    places[count++] = bridge(h, bridge(h, up, (int)numa), (int)numa);
            }
        }
    }
    return count;
}

static int plug(struct topo_host *h, int place, unsigned function)
{
    static unsigned device;
    if (function == 0)
        device = next_bus++;
    /* Below a port of its own, as devices are below switches; some directly. */
    int below = h->pci[place].number & PCI_BRIDGE || device % 5 == 0 ? place : bridge(h, place, h->pci[place].numa);
    int node = topo_pci_add(h, (uint64_t)device << 8 | function, below);
    h->pci[node].numa = h->pci[place].numa;
    return node;
}

static void port_state(struct topo_port *p, unsigned unkind)
{
    p->active = draw(100) >= unkind / 2;
    p->rate_bits = draw(100) < unkind ? UINT64_C(25000000000) : UINT64_C(200000000000);
    p->link = draw(200) < unkind ? TOPO_LINK_ETHERNET : TOPO_LINK_IB;
    p->channel_adapter = draw(400) >= unkind;
    p->software = draw(400) < unkind;
}

/* Any shape: 1 to 16 GPUs, 1 to 36 ports on cards of 1 to 4. */
static void make(uint64_t seed)
{
    int places[64];
    rng = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    host.ports = host.gpus = host.nodes = 0; /* all else is written before it is read */
    host.source = TOPO_SOURCE_SYSFS;
    host.switch_hops = 2;
    next_bus = 1;
    unsigned count = make_tree(&host, places), gpus = 1 + draw(16), ports = 1 + draw(36);
    unsigned where = 1 + draw(count), unkind = draw(3) ? 0 : 30, card = 1 + draw(4), step = draw(2);
    for (unsigned g = 0; g < gpus; g++) {
        int node = plug(&host, places[step ? g % where : draw(where)], 0);
        host.gpu[host.gpus++] = (struct topo_gpu){.pci = node, .number = host.pci[node].number};
    }
    for (unsigned i = 0, function = 0; i < ports; i++, function++) {
        static int place;
        if (i == 0 || function == card) {
            place = places[step ? i / card % where : draw(count)];
            function = 0;
        }
        struct topo_port *p = &host.port[host.ports++];
        *p = (struct topo_port){.port = 1, .pci = function ? -1 : plug(&host, place, 0)};
        if (function) /* beside the first one of its card */
            p->pci = topo_pci_add(&host, host.pci[p[-1].pci].number + 1, host.pci[p[-1].pci].parent),
            host.pci[p->pci].numa = host.pci[p[-1].pci].numa;
        snprintf(p->dev, sizeof(p->dev), "dev%u", draw(1000000));
        port_state(p, unkind);
    }
    topo_settle(&host);
}

/* ---- what must hold --------------------------------------------------------------------------------------------------- */

static bool choice[TOPO_GPUS][TOPO_PORTS];

/* Which usable ports are of the GPU's nearest class, found out from the answer's reasons and the host alone. */
static void choices(void)
{
    for (unsigned g = 0; g < host.gpus; g++) {
        unsigned best = TOPO_NEAR_SYS;
        for (unsigned i = 0; i < host.ports; i++) {
            if (plan.why[i] <= PLAN_PORT_EXTRA && host.near[g][i] < best)
                best = host.near[g][i];
        }
        for (unsigned i = 0; i < host.ports; i++)
            choice[g][i] = plan.why[i] <= PLAN_PORT_EXTRA && host.near[g][i] == best;
    }
}

/* Kuhn's matching: whether each GPU with a choice can have a port of its own. */
static bool match_seen[TOPO_PORTS];
static int match_of[TOPO_PORTS];

static bool match(unsigned g)
{
    for (unsigned i = 0; i < host.ports; i++) {
        if (!choice[g][i] || match_seen[i])
            continue;
        match_seen[i] = true;
        if (match_of[i] < 0 || match((unsigned)match_of[i])) {
            match_of[i] = (int)g;
            return true;
        }
    }
    return false;
}

static bool enough(void)
{
    bool all = true;
    memset(match_of, 0xff, sizeof(match_of));
    for (unsigned g = 0; g < host.gpus; g++) {
        bool any = false;
        for (unsigned i = 0; i < host.ports; i++)
            any |= choice[g][i];
        memset(match_seen, 0, sizeof(match_seen));
        all = all && (!any || match(g));
    }
    return all;
}

static bool same_choice(unsigned g, unsigned h)
{
    return memcmp(choice[g], choice[h], sizeof(choice[g])) == 0;
}

static const char *check_gpu(unsigned g, bool alone)
{
    const struct plan_ports_gpu *gpu = &plan.gpu[g];
    unsigned choices_left = 0, any = 0;
    for (unsigned i = 0; i < host.ports; i++) {
        any += choice[g][i];
        choices_left += choice[g][i] && plan.users[i] == 0;
    }
    if (!any != !gpu->count)
        return "a GPU with a usable port has one";
    if (choices_left && gpu->count < PLAN_PORTS_EACH)
        return "no nearest port is left while a GPU has room";
    for (unsigned k = 0; k < gpu->count; k++) {
        unsigned p = gpu->port[k];
        if (!choice[g][p])
            return "a GPU uses its nearest class alone";
        if (alone && plan.users[p] > 1)
            return "no port is shared while there are enough";
        if (plan.users[p] > 1 && gpu->count > 1)
            return "who shares has one port";
        for (unsigned i = 0; i < host.ports; i++) {
            if (choice[g][i] && plan.users[i] + 1 < plan.users[p])
                return "GPUs of a port differ by at most one from those of another that would do";
        }
    }
    for (unsigned h = 0; h < host.gpus; h++) {
        unsigned more = plan.gpu[h].count > gpu->count ? plan.gpu[h].count - gpu->count : 0;
        if (more > 1 && same_choice(g, h))
            return "counts of GPUs with the same choice differ by at most one";
    }
    return NULL;
}

/* The same machine found in another order, under other names: who gets which address. */
static bool permuted(void)
{
    other.source = host.source;
    other.switch_hops = host.switch_hops;
    other.ports = host.ports;
    other.gpus = host.gpus;
    other.nodes = host.nodes;
    memcpy(other.port, host.port, host.ports * sizeof(host.port[0]));
    memcpy(other.gpu, host.gpu, host.gpus * sizeof(host.gpu[0]));
    memcpy(other.pci, host.pci, host.nodes * sizeof(host.pci[0]));
    for (unsigned n = 0; n < host.ports; n++) {
        unsigned a = draw(host.ports), b = draw(host.ports);
        struct topo_port keep = other.port[a];
        other.port[a] = other.port[b];
        other.port[b] = keep;
        snprintf(other.port[a].dev, sizeof(other.port[a].dev), "x%u", draw(1000));
    }
    for (unsigned n = 0; n < host.gpus; n++) {
        unsigned a = draw(host.gpus);
        struct topo_gpu keep = other.gpu[0];
        other.gpu[0] = other.gpu[a];
        other.gpu[a] = keep;
    }
    topo_settle(&other);
    if (plan_ports(&other, &(struct plan_ports_rule){0}, &again))
        return false;
    for (unsigned g = 0; g < host.gpus; g++) {
        if (other.gpu[g].number != host.gpu[g].number || again.gpu[g].count != plan.gpu[g].count)
            return false;
        for (unsigned k = 0; k < plan.gpu[g].count; k++) {
            if (other.port[again.gpu[g].port[k]].pci != host.port[plan.gpu[g].port[k]].pci)
                return false;
        }
    }
    return true;
}

static const char *check(uint64_t seed)
{
    make(seed);
    if (plan_ports(&host, &(struct plan_ports_rule){0}, &plan))
        return "it answers";
    choices();
    bool alone = enough();
    for (unsigned g = 0; g < host.gpus; g++) {
        const char *wrong = check_gpu(g, alone);
        if (wrong)
            return wrong;
    }
    return permuted() ? NULL : "the order in which devices are found changes nothing";
}

static void machines_of_all_shapes(void **state)
{
    (void)state;
    unsigned count = getenv("BRAID_QUICK") ? MACHINES / 10 : MACHINES, shared = 0, several = 0, gpus = 0;
    for (uint64_t seed = 1; seed <= count; seed++) {
        const char *wrong = check(seed);
        if (wrong)
            fail_msg("seed %llu: does not hold: %s", (unsigned long long)seed, wrong);
        gpus += host.gpus;
        for (unsigned g = 0; g < host.gpus; g++) {
            several += plan.gpu[g].count > 1;
            shared += plan.gpu[g].count && plan.users[plan.gpu[g].port[0]] > 1;
        }
    }
    /* Both kinds of machines are there in numbers, or nothing was tried. */
    assert_true(shared > gpus / 20 && several > gpus / 20);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        const char *wrong = check(strtoull(argv[1], NULL, 10));
        for (unsigned i = 0; i < host.ports; i++)
            printf("port %u: node %d, why %d, users %u\n", i, host.port[i].pci, plan.why[i], plan.users[i]);
        for (unsigned g = 0; g < host.gpus; g++) {
            printf("GPU %u, %s:", g, topo_near_name(plan.gpu[g].near));
            for (unsigned i = 0; i < host.ports; i++)
                printf("%s%u", choice[g][i] ? " " : " -", i);
            printf(" gets");
            for (unsigned k = 0; k < plan.gpu[g].count; k++)
                printf(" %u", plan.gpu[g].port[k]);
            printf("\n");
        }
        printf("%s\n", wrong ? wrong : "all holds");
        return wrong != NULL;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(machines_of_all_shapes)};
    return cmocka_run_group_tests_name("plan_ports", tests, NULL, NULL);
}
