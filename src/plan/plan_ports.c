/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_ports.c - which ports of a host each of its GPUs uses: who shares with whom, and in what order. May not know devices by
 * name, nor read anything. Called by src/api/api_ports.c when opening, and by cli; next: plan_usable.c, plan_uplink.c
 */
#include "plan_ports.h"

#include <errno.h>
#include <string.h>

/* What is known while ports are given out. */
struct plan_give {
    const struct topo_host *host;
    const struct plan_ports_rule *rule;
    struct plan_ports_out *out;
    unsigned gpus;                     /* one where there is nobody */
    unsigned order[TOPO_GPUS];         /* those with the fewest ports to choose from first */
    unsigned choice[TOPO_GPUS];        /* how many there are to choose from */
    bool has[TOPO_GPUS][TOPO_PORTS];   /* which */
    unsigned wanted[TOPO_PORTS];       /* by so many GPUs */
    int narrow[TOPO_PORTS];            /* see plan_uplink() */
    unsigned narrow_users[TOPO_PORTS]; /* of the narrow link that port of this index is the first of */
};

static enum topo_near plan_near(const struct plan_give *v, unsigned g, unsigned i)
{
    return v->rule->nobody ? TOPO_NEAR_SYS : (enum topo_near)v->host->near[g][i];
}

/* ---- who has which ports to choose from ----------------------------------------------------------------------------- */

static void plan_choices(struct plan_give *v)
{
    for (unsigned g = 0; g < v->gpus; g++) {
        struct plan_ports_gpu *gpu = &v->out->gpu[g];
        if (gpu->mapped)
            continue;
        gpu->near = TOPO_NEAR_SYS;
        for (unsigned i = 0; i < v->host->ports; i++) {
            if (v->out->why[i] <= PLAN_PORT_EXTRA && plan_near(v, g, i) < gpu->near)
                gpu->near = plan_near(v, g, i);
        }
        if (v->rule->limited && gpu->near > v->rule->limit)
            continue;
        for (unsigned i = 0; i < v->host->ports; i++) {
            if (v->out->why[i] > PLAN_PORT_EXTRA || plan_near(v, g, i) != gpu->near)
                continue;
            v->has[g][i] = true;
            v->choice[g]++;
            v->wanted[i]++;
        }
    }
    /* By insertion: equals stay in the host's order. */
    for (unsigned g = 0; g < v->gpus; g++) {
        unsigned at = g;
        for (; at > 0 && v->choice[v->order[at - 1]] > v->choice[g]; at--)
            v->order[at] = v->order[at - 1];
        v->order[at] = g;
    }
}

static bool plan_same_choice(const struct plan_give *v, unsigned g, unsigned h)
{
    return v->choice[g] == v->choice[h] && memcmp(v->has[g], v->has[h], sizeof(v->has[g])) == 0;
}

/* ---- giving ------------------------------------------------------------------------------------------------------------ */

static void plan_give(struct plan_give *v, unsigned g, unsigned i)
{
    struct plan_ports_gpu *gpu = &v->out->gpu[g];
    gpu->port[gpu->count++] = (uint16_t)i;
    v->out->users[i]++;
    for (unsigned j = 0; j < v->host->ports && v->narrow[i] >= 0; j++)
        v->narrow_users[j] += v->narrow[j] == v->narrow[i];
}

/* Whether port i is better for the next GPU than j: less used, wanted by fewer, behind a link with fewer users. */
static bool plan_better(const struct plan_give *v, unsigned i, unsigned j)
{
    if (v->out->users[i] != v->out->users[j])
        return v->out->users[i] < v->out->users[j];
    if (v->wanted[i] != v->wanted[j])
        return v->wanted[i] < v->wanted[j];
    return v->narrow_users[i] < v->narrow_users[j];
}

/* The best port for the GPU, of those that nobody uses or of all; -1: none. */
static int plan_best(const struct plan_give *v, unsigned g, bool unused)
{
    int best = -1;
    for (unsigned i = 0; i < v->host->ports; i++) {
        if (v->has[g][i] && (!unused || v->out->users[i] == 0) && (best < 0 || plan_better(v, i, (unsigned)best)))
            best = (int)i;
    }
    return best;
}

/*
 * Moves one GPU away from port `from`, to one with at most `most` users, by way of others that move on. GPUs have one port each here.
 * Where the choices of GPUs are nested, as in a tree, the greedy first round leaves nothing to move; tables need not be trees.
 */
static bool plan_shift(struct plan_give *v, unsigned from, unsigned most, bool *seen)
{
    seen[from] = true;
    for (unsigned g = 0; g < v->gpus; g++) {
        struct plan_ports_gpu *gpu = &v->out->gpu[g];
        if (gpu->mapped || gpu->count != 1 || gpu->port[0] != from)
            continue;
        for (unsigned i = 0; i < v->host->ports; i++) {
            if (!v->has[g][i] || seen[i] || (v->out->users[i] > most && !plan_shift(v, i, most, seen)))
                continue;
            gpu->port[0] = (uint16_t)i;
            v->out->users[from]--;
            v->out->users[i]++;
            return true;
        }
    }
    return false;
}

/* No port has two users more than another that one of them could have. */
static void plan_level(struct plan_give *v)
{
    for (unsigned i = 0; i < v->host->ports; i++) {
        bool moved = true;
        while (moved && v->out->users[i] > 1) {
            bool seen[TOPO_PORTS] = {false};
            moved = plan_shift(v, i, v->out->users[i] - 2, seen);
        }
    }
}

/* One port for each GPU, then what nobody uses in turns. */
static void plan_rounds(struct plan_give *v)
{
    bool given = true;
    for (unsigned round = 0; round < PLAN_PORTS_EACH && given; round++) {
        given = false;
        for (unsigned n = 0; n < v->gpus; n++) {
            unsigned g = v->order[n];
            int i = plan_best(v, g, round > 0);
            if (i < 0 || v->out->gpu[g].mapped)
                continue;
            plan_give(v, g, (unsigned)i);
            given = true;
        }
        if (round == 0)
            plan_level(v);
    }
}

/* ---- GPUs that tie: the same ports, in an order that keeps cards whole ------------------------------------------------ */

/* Whether a block that ends before place `end` of the list ends with a card. */
static bool plan_card_ends(const struct topo_host *host, const unsigned *port, unsigned ports, unsigned end)
{
    int card = end < ports ? host->port[port[end]].card : -1;
    return card < 0 || host->port[port[end - 1]].card != card;
}

/* Blocks of two sizes that differ by one; the bigger ones where a card would be cut otherwise. */
static void plan_blocks(struct plan_give *v, const unsigned *gpu, unsigned gpus, const unsigned *port, unsigned ports)
{
    unsigned small = ports / gpus, big_left = ports % gpus, at = 0;
    for (unsigned n = 0; n < gpus; n++) {
        struct plan_ports_gpu *g = &v->out->gpu[gpu[n]];
        unsigned small_left = gpus - n - big_left;
        bool big = big_left > 0;
        if (big && small_left && !plan_card_ends(v->host, port, ports, at + small + 1) &&
            plan_card_ends(v->host, port, ports, at + small))
            big = false;
        big_left -= big;
        g->count = small + big;
        for (unsigned k = 0; k < g->count; k++)
            g->port[k] = (uint16_t)port[at + k];
        at += g->count;
    }
}

/* What the GPUs that tie with g got, dealt out again in order, where none of it is shared. */
static void plan_tie(struct plan_give *v, unsigned g)
{
    unsigned gpu[TOPO_GPUS], port[TOPO_PORTS], gpus = 0, ports = 0;
    bool theirs[TOPO_PORTS] = {false};
    for (unsigned h = g; h < v->gpus; h++) {
        if (!plan_same_choice(v, g, h) || v->out->gpu[h].mapped)
            continue;
        gpu[gpus++] = h;
        for (unsigned k = 0; k < v->out->gpu[h].count; k++) {
            unsigned i = v->out->gpu[h].port[k];
            if (v->out->users[i] > 1)
                return;
            theirs[i] = true;
        }
    }
    for (unsigned i = 0; i < v->host->ports; i++) {
        if (theirs[i])
            port[ports++] = i;
    }
    if (gpus && ports)
        plan_blocks(v, gpu, gpus, port, ports);
}

static void plan_ties(struct plan_give *v)
{
    for (unsigned g = 0; g < v->gpus; g++) {
        bool first = !v->out->gpu[g].mapped;
        for (unsigned h = 0; h < g; h++)
            first = first && (v->out->gpu[h].mapped || !plan_same_choice(v, g, h));
        if (first)
            plan_tie(v, g);
    }
}

/* Each GPU uses all; GPUs that tie start at different ports, so that neither these nor their peers' receivers start alike. */
static void plan_all(struct plan_give *v)
{
    for (unsigned g = 0; g < v->gpus; g++) {
        unsigned all[TOPO_PORTS], count = 0, rank = 0, ties = 0;
        if (v->out->gpu[g].mapped)
            continue;
        for (unsigned i = 0; i < v->host->ports && count < PLAN_PORTS_EACH; i++) {
            if (v->has[g][i])
                all[count++] = i;
        }
        for (unsigned h = 0; h < v->gpus; h++) {
            bool tie = !v->out->gpu[h].mapped && plan_same_choice(v, g, h);
            ties += tie;
            rank += tie && h < g;
        }
        for (unsigned k = 0; k < count; k++)
            plan_give(v, g, all[(rank * count / ties + k) % count]);
    }
}

/* ---- the user's ------------------------------------------------------------------------------------------------------- */

static int plan_map_check(const struct topo_host *host, const struct plan_ports_rule *rule)
{
    for (unsigned n = 0; n < rule->maps; n++) {
        const struct plan_ports_map *map = &rule->map[n];
        if (map->gpu >= host->gpus || map->count > PLAN_PORTS_EACH)
            return -EINVAL;
        for (unsigned m = 0; m < n; m++) {
            if (rule->map[m].gpu == map->gpu)
                return -EINVAL;
        }
        for (unsigned k = 0; k < map->count; k++) {
            if (map->port[k] >= host->ports)
                return -EINVAL;
        }
    }
    return 0;
}

static void plan_map(struct plan_give *v)
{
    for (unsigned n = 0; n < v->rule->maps && !v->rule->nobody; n++) {
        const struct plan_ports_map *map = &v->rule->map[n];
        struct plan_ports_gpu *gpu = &v->out->gpu[map->gpu];
        gpu->mapped = true;
        for (unsigned k = 0; k < map->count; k++) {
            enum topo_near near = plan_near(v, map->gpu, map->port[k]);
            plan_give(v, map->gpu, map->port[k]);
            gpu->near = near > gpu->near ? near : gpu->near;
        }
    }
}

/* No more than `each`, which is the first of each block; users and reasons as they then are. */
static void plan_end(struct plan_give *v)
{
    unsigned most = v->rule->each ? min_u32(v->rule->each, PLAN_PORTS_EACH) : PLAN_PORTS_EACH;
    for (unsigned i = 0; i < v->host->ports; i++) {
        v->out->users[i] = 0;
        if (v->out->why[i] == PLAN_PORT_FAR && v->wanted[i])
            v->out->why[i] = PLAN_PORT_EXTRA;
    }
    for (unsigned g = 0; g < v->gpus; g++) {
        struct plan_ports_gpu *gpu = &v->out->gpu[g];
        if (!gpu->mapped)
            gpu->count = min_u32(gpu->count, most);
        for (unsigned k = 0; k < gpu->count; k++) {
            v->out->users[gpu->port[k]]++;
            v->out->why[gpu->port[k]] = PLAN_PORT_USED;
        }
    }
}

int plan_ports(const struct topo_host *host, const struct plan_ports_rule *rule, struct plan_ports_out *out)
{
    struct plan_ports_rule mine = *rule;
    struct plan_give v = {.host = host, .rule = &mine, .out = out};
    int rc = plan_map_check(host, rule);
    if (rc)
        return rc;
    memset(out, 0, sizeof(*out));
    mine.nobody |= host->gpus == 0;
    v.gpus = mine.nobody ? 1 : host->gpus;
    plan_usable(host, &mine, out);
    for (unsigned i = 0; i < host->ports; i++)
        v.narrow[i] = plan_uplink(host, out, i);
    plan_map(&v);
    plan_choices(&v);
    if (mine.all) {
        plan_all(&v);
    } else {
        plan_rounds(&v);
        plan_ties(&v);
    }
    plan_end(&v);
    return 0;
}
