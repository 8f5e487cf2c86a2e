/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_peer.c - connects to all peers in four rounds of the caller's alltoall: rails, lanes' ends, who is up, verdict.
 *
 * A PE that fails goes through all rounds all the same and says so in its blobs: the others then fail with a clear
 * message instead of waiting for it. What is found in a round is told in the next; the verdict is for what is found in
 * the third. The third is also the meeting after which every lane can be used: nobody sends to a QP that is not yet
 * ready to receive, which would cost a retransmission timeout.
 * May not touch ops. Called by the user; next: api_channel.c, src/plan/plan_pair.c, src/rail/rail_conn.c
 */
#include "api.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What connecting needs until it is done. */
struct api_connect {
    struct braid *b;
    const struct braid_peers *peers;
    int error;      /* the first failure, here or at a peer (-ECONNABORTED); told in the next round */
    bool said;      /* why has been logged */
    uint8_t *named; /* of each peer: whether what is wrong with it has been logged; it shows again in each round */
    uint8_t *send, *recv;
    struct rail_wire_rails *rails; /* of each peer */
    struct api_pairs *pairs;       /* with each peer */
    uint16_t *up;                  /* [channel][pe]: lanes that this side has brought up */
};

static struct rail_wire_head api_head(const struct api_connect *c)
{
    return (struct rail_wire_head){
        .error = c->error, .pe = (uint32_t)c->b->my_pe, .cookie = c->b->cookie, .channels = c->b->options.channels};
}

static uint8_t *api_blob(uint8_t *blobs, int pe)
{
    return blobs + (size_t)pe * RAIL_WIRE_BYTES;
}

static void api_fail(struct api_connect *c, int rc)
{
    if (rc && !c->error)
        c->error = rc;
}

/* One round. A failing exchange ends everything: nobody can be told. */
static int api_round(struct api_connect *c)
{
    int rc = c->peers->alltoall(c->peers->arg, c->send, c->recv, RAIL_WIRE_BYTES);
    if (rc)
        log_write(&c->b->log, LOG_LEVEL_ERROR, "the caller's alltoall failed: %s", strerror(rc < 0 ? -rc : rc));
    return rc > 0 ? -EIO : rc;
}

/* What unpacking a peer's blob said, and what its head says. 0 where the body can be used. */
static int api_judge(struct api_connect *c, int pe, int rc, const struct rail_wire_head *head, const char *why)
{
    const struct log *log = c->named[pe] ? NULL : &c->b->log;
    if (!rc && head->error) {
        /* The own blob carries the mark too, and a peer that fails for another's sake is not to blame. */
        if (pe == c->b->my_pe || head->error == -ECONNABORTED)
            return -ECONNABORTED;
        log_write(log, LOG_LEVEL_ERROR, "PE %d could not connect: %s; see its own log", pe, strerror(-head->error));
        rc = -ECONNABORTED;
    } else if (rc) {
        log_write(log, LOG_LEVEL_ERROR, "the address blob of PE %d is %s", pe, why);
    } else if (head->pe != (uint32_t)pe) {
        log_write(log, LOG_LEVEL_ERROR, "block %d of the alltoall came from PE %u: are all PEs numbered alike?", pe,
                  head->pe);
        rc = -EPROTO;
    } else if (head->channels != c->b->options.channels) {
        log_write(log, LOG_LEVEL_ERROR, "PE %d has %u channels, this PE %u: set BRAID_CHANNELS alike everywhere", pe,
                  head->channels, c->b->options.channels);
        rc = -EPROTO;
    }
    if (rc)
        c->named[pe] = c->said = true;
    return rc;
}

/* Whether two ports reach each other, as far as they themselves can say: same link layer, on InfiniBand the same subnet
 * (the GID's upper half), and not of different planes. The probes find out the rest. Symmetric: both sides pair alike. */
static bool api_rails_reach(const struct rail_wire_rail *a, const struct rail_wire_rail *b)
{
    if (a->link != b->link)
        return false;
    if (a->link == RAIL_WIRE_LINK_IB && memcmp(a->gid, b->gid, 8) != 0)
        return false;
    return a->plane == b->plane || a->plane == RAIL_WIRE_NO_PLANE || b->plane == RAIL_WIRE_NO_PLANE;
}

static void api_reach(const struct rail_wire_rails *mine, const struct rail_wire_rails *theirs,
                      uint16_t reach[PLAN_MAX_RAILS])
{
    for (unsigned i = 0; i < mine->count; i++) {
        reach[i] = 0;
        for (unsigned j = 0; j < theirs->count; j++) {
            if (api_rails_reach(&mine->rail[i], &theirs->rail[j]))
                reach[i] |= (uint16_t)(1u << j);
        }
    }
}

/* The ways of each rail, and of all together. */
static unsigned api_ways(const struct rail_wire_rails *rails, uint8_t out[PLAN_MAX_RAILS])
{
    unsigned sum = 0;
    for (unsigned i = 0; i < rails->count; i++)
        sum += out[i] = rails->rail[i].ways;
    return sum;
}

static int api_pair(struct api_connect *c, const struct rail_wire_rails *mine, int pe)
{
    const struct rail_wire_rails *theirs = &c->rails[pe];
    struct api_pairs *pairs = &c->pairs[pe];
    uint16_t reach[PLAN_MAX_RAILS];
    api_reach(mine, theirs, reach);
    uint8_t ways[2][PLAN_MAX_RAILS];
    pairs->spread = api_ways(mine, ways[0]) + api_ways(theirs, ways[1]) > mine->count + theirs->count;
    struct plan_lag_pair_in in = {
        .rails = {.local_rails = mine->count, .remote_rails = theirs->count, .upper = c->b->my_pe > pe, .reach = reach},
        .local_ways = ways[0],
        .remote_ways = ways[1]};
    int count = plan_lag_pair(&in, pairs->pair, &pairs->unused);
    if (count < 0)
        return count;
    pairs->count = (unsigned)count;
    if (count > 0)
        return 0;
    log_write(&c->b->log, LOG_LEVEL_ERROR,
              "PE %d has %u rails, this PE %u, and none reaches another: link layers, subnets or planes differ", pe,
              theirs->count, mine->count);
    return -ENETUNREACH;
}

/* How many PEs before this one use the same ports: together they should not choose the same home. */
static unsigned api_rank(const struct api_connect *c)
{
    const struct rail_wire_rails *mine = &c->rails[c->b->my_pe];
    unsigned rank = 0;
    for (int pe = 0; pe < c->b->my_pe; pe++) {
        const struct rail_wire_rails *other = &c->rails[pe];
        bool same = other->count == mine->count;
        for (unsigned i = 0; same && i < mine->count; i++)
            same = memcmp(other->rail[i].gid, mine->rail[i].gid, sizeof(mine->rail[i].gid)) == 0;
        rank += same;
    }
    return rank;
}

/* The own home rail: of those that most peers can have a lane to. */
static void api_choose_home(struct api_connect *c)
{
    unsigned reached_by[PLAN_MAX_RAILS] = {0};
    for (int pe = 0; pe < c->b->n_pes; pe++) {
        uint32_t rails = 0;
        for (unsigned k = 0; k < c->pairs[pe].count; k++)
            rails |= 1u << c->pairs[pe].pair[k].local;
        for (unsigned i = 0; i < c->b->rail_count; i++)
            reached_by[i] += rails >> i & 1;
    }
    struct plan_home_in in = {.rails = c->b->rail_count, .reached_by = reached_by, .rank = api_rank(c)};
    c->b->home = plan_home(&in);
}

/* Round 1: everyone's rails, and from them who is joined with whom. */
static int api_exchange_rails(struct api_connect *c)
{
    struct braid *b = c->b;
    char why[RAIL_WIRE_WHY] = "";
    api_fail(c, api_gpu_line(b));
    struct rail_wire_rails mine = {.head = api_head(c), .count = b->rail_count};
    for (unsigned i = 0; i < b->rail_count; i++)
        mine.rail[i] = b->rail[i]->address;
    for (int pe = 0; pe < b->n_pes; pe++)
        rail_wire_pack_rails(&mine, api_blob(c->send, pe));
    int rc = api_round(c);
    if (rc)
        return rc;
    unsigned unused = 0;
    for (int pe = 0; pe < b->n_pes; pe++) {
        rc = rail_wire_unpack_rails(api_blob(c->recv, pe), RAIL_WIRE_BYTES, &c->rails[pe], why);
        rc = api_judge(c, pe, rc, &c->rails[pe].head, why);
        if (!rc)
            rc = api_pair(c, &mine, pe);
        api_fail(c, rc);
        unused += c->pairs[pe].unused;
    }
    if (unused)
        log_write(&b->log, LOG_LEVEL_WARN, "%u ports reach no port of a peer and carry nothing to it", unused);
    api_choose_home(c);
    return 0;
}

static void api_make_channels(struct api_connect *c)
{
    struct braid *b = c->b;
    for (unsigned i = 0; i < b->options.channels && !c->error; i++) {
        int rc = api_channel_make(b, i, c->pairs, &b->channel[i]);
        if (!rc)
            b->channel_count++;
        api_fail(c, rc);
    }
    for (unsigned i = 0; i < b->channel_count; i++) {
        for (int pe = 0; pe < b->n_pes; pe++) {
            struct api_peer *peer = &b->channel[i]->peers[pe];
            peer->cookie = c->rails[pe].head.cookie;
            peer->gpu_line = c->rails[pe].rail[0].gpu_flush_addr != 0;
        }
    }
}

static void api_pack_lanes(struct api_connect *c, int pe)
{
    struct rail_wire_lanes lanes = {
        .head = api_head(c), .count = c->error ? 0 : c->pairs[pe].count, .home = c->b->home};
    for (unsigned i = 0; i < c->b->channel_count; i++) {
        for (unsigned k = 0; k < lanes.count; k++)
            lanes.end[i][k] = rail_lane_end(c->b->channel[i]->peers[pe].lane[k]);
    }
    rail_wire_pack_lanes(&lanes, api_blob(c->send, pe));
}

/* Brings up what can be of one peer. What cannot be is left out with one warning. */
static void api_connect_peer(struct api_connect *c, int pe, const struct rail_wire_lanes *lanes)
{
    struct braid *b = c->b;
    for (unsigned i = 0; i < b->channel_count; i++) {
        struct api_peer *peer = &b->channel[i]->peers[pe];
        peer->home_rail = lanes->home;
        for (unsigned k = 0; k < peer->lane_count; k++) {
            const struct rail_wire_rail *remote = &c->rails[pe].rail[peer->remote_rail[k]];
            uint32_t mtu = plan_pair_mtu(b->rail[peer->local_rail[k]]->address.mtu, remote->mtu);
            int rc = rail_lane_connect(peer->lane[k], remote, lanes->end[i][k], mtu);
            if (rc)
                log_write(&b->log, i ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN,
                          "port %s cannot be connected to rail %u of PE %d: %s; the lane is left out",
                          b->rail[peer->local_rail[k]]->name, peer->remote_rail[k], pe, strerror(-rc));
            else
                c->up[i * (unsigned)b->n_pes + (unsigned)pe] |= (uint16_t)(1u << k);
        }
    }
}

/* Round 2: the QPNs and start PSNs of every lane. */
static int api_exchange_lanes(struct api_connect *c)
{
    struct braid *b = c->b;
    char why[RAIL_WIRE_WHY] = "";
    for (int pe = 0; pe < b->n_pes; pe++)
        api_pack_lanes(c, pe);
    int rc = api_round(c);
    if (rc)
        return rc;
    bool connect = !c->error;
    for (int pe = 0; pe < b->n_pes; pe++) {
        struct rail_wire_lanes lanes;
        rc = rail_wire_unpack_lanes(api_blob(c->recv, pe), RAIL_WIRE_BYTES, &lanes, why);
        rc = api_judge(c, pe, rc, &lanes.head, why);
        if (!rc && connect && lanes.count != c->pairs[pe].count) {
            log_write(&b->log, LOG_LEVEL_ERROR, "PE %d made %u lanes to this PE, expected %u", pe, lanes.count,
                      c->pairs[pe].count);
            rc = -EPROTO;
        }
        if (!rc && connect && lanes.home >= c->rails[pe].count) {
            log_write(&b->log, LOG_LEVEL_ERROR, "PE %d says that rail %u is its home, but has %u", pe, lanes.home,
                      c->rails[pe].count);
            rc = -EPROTO;
        }
        api_fail(c, rc);
        if (!rc && connect)
            api_connect_peer(c, pe, &lanes);
    }
    return 0;
}

/* Keeps the lanes to a peer that both sides can use, and says once what is missing and what follows from it. */
static int api_settle(struct api_connect *c, int pe, const struct rail_wire_status *status, const char *what)
{
    struct braid *b = c->b;
    uint16_t refused = 0;
    bool unreachable = false;
    for (unsigned i = 0; i < b->channel_count; i++) {
        uint16_t *up = &c->up[i * (unsigned)b->n_pes + (unsigned)pe];
        refused |= *up & (uint16_t)~status->up[i];
        struct api_peer *peer = &b->channel[i]->peers[pe];
        *up &= status->up[i];
        api_peer_settle(peer, *up);
        unreachable |= peer->lane_count == 0;
    }
    if (refused)
        log_write(&b->log, LOG_LEVEL_WARN, "PE %d %s %d of its lanes to this PE: they are left out; see its log", pe,
                  what, __builtin_popcount(refused));
    if (unreachable) {
        log_write(&b->log, LOG_LEVEL_ERROR, "no lane to PE %d could be connected: see the warnings above", pe);
        c->named[pe] = c->said = true;
        return -ENETUNREACH;
    }
    return 0;
}

/* What follows from the lanes that a peer has in the end. */
static void api_peer_start(struct api_connect *c, struct api_peer *peer)
{
    struct braid *b = c->b;
    const struct rail_wire_rails *theirs = &c->rails[peer->pe];
    peer->order.unordered = b->options.placement == OPTIONS_PLACEMENT_UNORDERED;
    for (unsigned k = 0; k < peer->lane_count; k++) {
        const struct rail_wire_rail *remote = &theirs->rail[peer->remote_rail[k]];
        /* It is the target's device that places. */
        if (b->options.placement == OPTIONS_PLACEMENT_AUTO && remote->placement == RAIL_WIRE_PLACEMENT_UNORDERED)
            peer->order.unordered = true;
        peer->silent |= remote->placement == RAIL_WIRE_PLACEMENT_SILENT;
        const struct rail_wire_rail *local = &b->rail[peer->local_rail[k]]->address;
        api_bulk_start(peer, k, min_u64(api_lag_wire_bits(remote), api_lag_wire_bits(local)), peer->rtt_ns[k]);
    }
    api_order_start(peer);
    peer->silent &= !peer->order.unordered && b->options.placement == OPTIONS_PLACEMENT_AUTO;
    if (peer->channel->index == 0 && peer->home >= peer->lane_count)
        log_write(&b->log, LOG_LEVEL_WARN,
                  "no lane reaches the home rail (%u) of PE %d: it is asked to execute atomics itself", peer->home_rail,
                  peer->pe);
}

/* Round 3: which lanes are up on both sides; and all meet. */
static int api_exchange_status(struct api_connect *c)
{
    struct braid *b = c->b;
    char why[RAIL_WIRE_WHY] = "";
    for (int pe = 0; pe < b->n_pes; pe++) {
        struct rail_wire_status mine = {.head = api_head(c)};
        for (unsigned i = 0; i < b->channel_count; i++)
            mine.up[i] = c->up[i * (unsigned)b->n_pes + (unsigned)pe];
        rail_wire_pack_status(&mine, api_blob(c->send, pe));
    }
    int rc = api_round(c);
    if (rc)
        return rc;
    bool settle = !c->error;
    for (int pe = 0; pe < b->n_pes; pe++) {
        struct rail_wire_status status;
        rc = rail_wire_unpack_status(api_blob(c->recv, pe), RAIL_WIRE_BYTES, &status, why);
        rc = api_judge(c, pe, rc, &status.head, why);
        if (!rc && settle)
            rc = api_settle(c, pe, &status, "could not bring up");
        api_fail(c, rc);
    }
    return 0;
}

/* Which rules of order are in force, and why. */
static void api_say(const struct braid *b)
{
    static const char *const orders[] = {"release", "strict", "drain"};
    unsigned unordered = 0, silent = 0;
    for (int pe = 0; pe < b->n_pes; pe++) {
        unordered += b->channel[0]->peers[pe].order.unordered;
        silent += b->channel[0]->peers[pe].silent;
    }
    log_write(
        &b->log, LOG_LEVEL_INFO,
        "order %s; tail %s; flushes before word ops %s; placement taken as out of order for %u of %d PEs, in "
        "order for %u whose devices do not say; home rail %u; pieces of %u bytes or more, cut from %u, %u ns each",
        orders[b->options.order], b->options.tail ? "on" : "off",
        b->options.order == OPTIONS_ORDER_DRAIN ? "off" : "on", unordered, b->n_pes, silent, b->home,
        b->options.piece_min, b->options.stripe_min, b->piece_cost_ns);
}

/* Sizes that the options leave to be measured. */
static void api_calibrate(struct braid *b)
{
    uint32_t fastest = UINT32_MAX;
    struct plan_threshold auto_sizes;
    for (unsigned i = 0; i < b->rail_count; i++) {
        struct plan_rate rate;
        plan_rate_init(&rate, api_lag_wire_bits(&b->rail[i]->address), b->rail[i]->address.mtu, 0);
        b->total_weight += (uint64_t)rate.weight * b->rail[i]->address.wires;
        fastest = min_u32(fastest, rate.mib_ns);
    }
    plan_threshold(b->piece_cost_ns, fastest, b->total_weight, &auto_sizes);
    if (b->options.piece_min == OPTIONS_AUTO)
        b->options.piece_min = (uint32_t)min_u64(auto_sizes.piece_min, 1u << 30);
    if (b->options.stripe_min == OPTIONS_AUTO)
        b->options.stripe_min = (uint32_t)min_u64(auto_sizes.stripe_min, 1u << 30);
}

/* Probes every lane. A peer that none comes back from is found out before the verdict, so that all are told. */
static int api_probe_all(struct api_connect *c)
{
    struct braid *b = c->b;
    int rc = api_probe(b, c->up);
    for (unsigned i = 0; i < b->channel_count * (unsigned)b->n_pes && !rc; i++) {
        if (c->up[i])
            continue;
        log_write(&b->log, LOG_LEVEL_ERROR, "no lane to PE %u works: see the warnings above", i % (unsigned)b->n_pes);
        c->said = true;
        rc = -ENETUNREACH;
    }
    return rc;
}

/* Round 4: on which lanes the probes came back, and whether all can go on. What is found wrong here has nobody left to be
 * told to. */
static int api_exchange_verdict(struct api_connect *c)
{
    struct braid *b = c->b;
    char why[RAIL_WIRE_WHY] = "";
    if (!c->error)
        api_fail(c, api_probe_all(c));
    for (int pe = 0; pe < b->n_pes; pe++) {
        struct rail_wire_status mine = {.head = api_head(c)};
        for (unsigned i = 0; i < b->channel_count; i++)
            mine.up[i] = c->up[i * (unsigned)b->n_pes + (unsigned)pe];
        rail_wire_pack_verdict(&mine, api_blob(c->send, pe));
    }
    int rc = api_round(c);
    if (rc)
        return rc;
    bool settle = !c->error;
    for (int pe = 0; pe < b->n_pes; pe++) {
        struct rail_wire_status theirs;
        rc = rail_wire_unpack_verdict(api_blob(c->recv, pe), RAIL_WIRE_BYTES, &theirs, why);
        rc = api_judge(c, pe, rc, &theirs.head, why);
        if (!rc && settle)
            rc = api_settle(c, pe, &theirs, "could not probe");
        api_fail(c, rc);
    }
    if (c->error)
        return 0;
    api_calibrate(b);
    for (unsigned i = 0; i < b->channel_count; i++) {
        for (int pe = 0; pe < b->n_pes; pe++)
            api_peer_start(c, &b->channel[i]->peers[pe]);
    }
    api_say(b);
    return 0;
}

static int api_check_peers(struct braid *b, const struct braid_peers *given, struct braid_peers *peers)
{
    static const struct api_struct layout = {.name = "braid_peers", .size = sizeof(*peers)};
    if (!given) {
        log_write(&b->log, LOG_LEVEL_ERROR, "braid_connect() without a braid_peers");
        return -EINVAL;
    }
    int rc = api_struct_read(&b->log, &layout, given, peers);
    if (rc)
        return rc;
    if (!peers->alltoall || peers->n_pes < 1 || peers->my_pe < 0 || peers->my_pe >= peers->n_pes) {
        log_write(&b->log, LOG_LEVEL_ERROR,
                  "bad braid_peers: expected an alltoall and 0 <= my_pe < n_pes; it says %s, PE %d of %d",
                  peers->alltoall ? "an alltoall" : "no alltoall", peers->my_pe, peers->n_pes);
        return -EINVAL;
    }
    if (b->state != API_OPEN) {
        log_write(&b->log, LOG_LEVEL_ERROR, "braid_connect() works once per context: open another one");
        return -EALREADY;
    }
    return 0;
}

static int api_connect_rounds(struct api_connect *c)
{
    size_t n = (size_t)c->b->n_pes;
    c->send = calloc(n, RAIL_WIRE_BYTES);
    c->recv = calloc(n, RAIL_WIRE_BYTES);
    c->rails = calloc(n, sizeof(*c->rails));
    c->pairs = calloc(n, sizeof(*c->pairs));
    c->up = calloc(n * API_MAX_CHANNELS, sizeof(*c->up));
    c->named = calloc(n, sizeof(*c->named));
    if (!c->send || !c->recv || !c->rails || !c->pairs || !c->up || !c->named) {
        /* Not even the bad news can be sent. */
        log_write(&c->b->log, LOG_LEVEL_ERROR, "no memory to connect to %zu peers", n);
        return -ENOMEM;
    }
    int rc = api_exchange_rails(c);
    if (rc)
        return rc;
    api_make_channels(c);
    rc = api_exchange_lanes(c);
    if (!rc)
        rc = api_exchange_status(c);
    if (!rc)
        rc = api_exchange_verdict(c);
    if (!rc && c->error == -ECONNABORTED && !c->said)
        log_write(&c->b->log, LOG_LEVEL_ERROR,
                  "connecting was given up because another PE could not: see the others' logs");
    return rc ? rc : c->error;
}

int braid_connect(struct braid *b, const struct braid_peers *given)
{
    struct braid_peers peers;
    if (!b)
        return -EINVAL;
    int rc = api_check_peers(b, given, &peers);
    if (rc)
        return rc;
    struct api_connect c = {.b = b, .peers = &peers};
    b->my_pe = peers.my_pe;
    b->n_pes = peers.n_pes;
    rc = api_connect_rounds(&c);
    b->state = rc ? API_FAILED : API_CONNECTED;
    free(c.send);
    free(c.recv);
    free(c.rails);
    free(c.pairs);
    free(c.up);
    free(c.named);
    return rc;
}
