/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_moe_where.c - where the time of the busiest PE went. Its ports' counters say how long its wires were busy; the time that
 * they were idle goes to what held the PE up meanwhile. Called by bench_moe.c; next: emu_sim.h.
 */
#include "bench_moe.h"

#include <stdio.h>
#include <string.h>

enum { BENCH_MOE_SAMPLE_NS = 2000 };

/* More than this makes a port used: signals may go over one that carries no payload. */
enum { BENCH_MOE_USED = 65536 };

/** Bytes of all its ports, and the rate of those that the transport uses: that another stays idle has no other reason. */
static uint64_t bench_moe_carried(struct bench_moe_pe *p, double *rate)
{
    const struct bench_run *run = p->pe->run;
    uint64_t bytes = 0;
    struct emu_sim_port port;

    *rate = 0;
    if (run->spec->live)
        p->pe->transport->look(p->pe->transport_self);
    for (int i = 0; i < p->where.n; i++) {
        uint64_t n = 0;

        if (run->spec->live)
            n = p->pe->rail[i].tx;
        else if (run->emu->port(run->sim, p->where.port[i], &port) == 0)
            n = p->moe->busiest_in ? port.rx_payload : port.tx_payload;
        *rate += n > p->where.began[i] + BENCH_MOE_USED ? p->where.rate[i] : 0;
        p->where.now[i] = n;
        bytes += n;
    }
    return bytes;
}

/** Whether a list "a,b,c" has the word. */
static bool bench_moe_listed(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = list; (at = strstr(at, word)); at += len) {
        if ((at == list || at[-1] == ',') && (at[len] == ',' || !at[len]))
            return true;
    }
    return false;
}

/** Finds the PE's ports among all. */
static void bench_moe_where_ports(struct bench_moe_pe *p, const char *ports)
{
    struct bench_run *run = p->pe->run;
    struct bench_moe_where *w = &p->where;
    struct emu_sim_port port;
    char host[16];

    snprintf(host, sizeof(host), "h%d", p->pe->rank);
    for (int i = 0; w->n < BRAID_MAX_RAILS && run->emu->port(run->sim, i, &port) == 0; i++) {
        if (strcmp(port.host, host) != 0 || !bench_moe_listed(ports, port.port))
            continue;
        w->port[w->n] = i;
        memcpy(p->moe->line.port[w->n], port.port, sizeof(port.port));
        w->rate[w->n] = port.payload_rate / 1e9;
        w->began[w->n++] = p->moe->busiest_in ? port.rx_payload : port.tx_payload;
    }
}

/** Between processes: the rails, of which libbraid knows what has been acknowledged. What others send here no PE can tell. */
static void bench_moe_where_rails(struct bench_moe_pe *p)
{
    struct bench_moe_where *w = &p->where;

    p->pe->transport->look(p->pe->transport_self);
    for (w->n = 0; w->n < p->pe->n_rails; w->n++) {
        const struct bench_rail *r = &p->pe->rail[w->n];

        memcpy(p->moe->line.port[w->n], r->port, sizeof(r->port));
        w->rate[w->n] = bench_live_payload(r->rate_bits) / 1e9;
        w->began[w->n] = r->tx;
    }
}

void bench_moe_where_open(struct bench_moe_pe *p)
{
    struct bench_run *run = p->pe->run;
    struct bench_moe_where *w = &p->where;
    char ports[1024], planes[1024];
    double rate;

    if (p->pe->pe != p->moe->busiest || (!run->spec->live && bench_ports(run, p->pe->pe, ports, planes, sizeof(ports))))
        return;
    if (run->spec->live)
        bench_moe_where_rails(p);
    else
        bench_moe_where_ports(p, ports);
    w->on = true;
    w->sample_ns = BENCH_MOE_SAMPLE_NS;
    p->moe->line.n_ports = w->n;
    w->at_ns = run->emu->now();
    w->slept_ns = p->pe->slept_ns;
    w->bytes = bench_moe_carried(p, &rate);
}

/** Notes what the ports have carried, when it is time; every other note goes where there is no room. */
static void bench_moe_sample(struct bench_moe_pe *p, uint64_t now)
{
    struct bench_timeline *l = &p->moe->line;
    uint64_t at = now - p->moe->began_ns;

    if (l->n && at < l->at_ns[l->n - 1] + p->where.sample_ns)
        return;
    if (l->n == BENCH_SAMPLES) {
        for (int i = 0; i < BENCH_SAMPLES / 2; i++) {
            l->at_ns[i] = l->at_ns[2 * i];
            memcpy(l->bytes[i], l->bytes[2 * i], sizeof(l->bytes[i]));
        }
        l->n = BENCH_SAMPLES / 2;
        p->where.sample_ns *= 2;
    }
    l->at_ns[l->n] = at;
    for (int i = 0; i < p->where.n; i++)
        l->bytes[l->n][i] = p->where.now[i] - p->where.began[i];
    l->n++;
}

/** What holds up a PE whose wires are idle. */
static enum bench_where bench_moe_held(const struct bench_moe_pe *p, bool awake)
{
    const struct bench_pe *pe = p->pe;
    bool deferred = pe->transport->deferred && pe->transport->deferred(pe->transport_self) > 0;

    if (p->to_issue == 0 && p->taken == p->asked)
        return deferred ? BENCH_WHERE_ORDER : p->copying ? BENCH_WHERE_GPU : BENCH_WHERE_END;
    if (awake)
        return BENCH_WHERE_PROXY;
    if (p->taken < p->asked)
        return p->ask[p->taken & (p->room - 1)].at_ns > p->now_ns ? BENCH_WHERE_GPU : BENCH_WHERE_PROXY;
    return p->copying ? BENCH_WHERE_GPU : p->blocked ? BENCH_WHERE_CREDIT : BENCH_WHERE_END;
}

void bench_moe_where_note(struct bench_moe_pe *p, bool awake)
{
    struct bench_moe_where *w = &p->where;
    uint64_t now, bytes;
    double idle, busy, slept, rate;

    if (!w->on || p->over_ns)
        return;
    now = p->pe->run->emu->now();
    bytes = bench_moe_carried(p, &rate);
    bench_moe_sample(p, now);
    /* A packet counts when its last bit has left, or its first: what is too much for this step is of the next. */
    busy = (rate > 0 ? (double)(bytes - w->bytes) / rate : 0) + w->carry_ns;
    idle = (double)(now - w->at_ns);
    w->carry_ns = busy > idle ? busy - idle : 0;
    busy -= w->carry_ns;
    idle -= busy;
    slept = (double)(p->pe->slept_ns - w->slept_ns);
    slept = slept < idle ? slept : idle;
    w->ns[BENCH_WHERE_WIRE] += busy;
    w->ns[BENCH_WHERE_ORDER] += slept;
    w->ns[bench_moe_held(p, awake)] += idle - slept;
    w->bytes = bytes;
    w->at_ns = now;
    w->slept_ns = p->pe->slept_ns;
}
