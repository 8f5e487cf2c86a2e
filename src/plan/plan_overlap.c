/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_overlap.c - which bytes of a peer are being written, so that no put to the same bytes overtakes an older one.
 * May not post or flush; counts are given. Called by src/api for each put: check, add, posted, and trim as flushes come.
 *
 * The common answer is "nothing there" and must be cheap. Programs write upwards through a few buffers, so most entries
 * lie in runs: a run is a range that holds entries in the order of their tickets and addresses, so it grows at its end
 * and shrinks at its front, and to be outside of all runs is nearly the whole test. Entries that fit no run are found by
 * hash: such a one is kept in granules of a power of two that is not below its length, hence in two of them at most. A put
 * looks up the granules it touches, in each size of granule that is in use. Chains run from newer to older tickets, so that
 * the oldest entries fall off their ends. Words are few and come again and again, in no order: they have places
 * of their own.
 */
#include "plan.h"

#include <string.h>

#define PLAN_OVERLAP_LONGEST (UINT64_C(1) << 62) /* of one entry: its granule must fit */
#define PLAN_OVERLAP_HALF    (UINT64_MAX / 2)
#define ATTR_SLOW            __attribute__((noinline)) /* keeps what is rare out of what is not */
#define PLAN_OVERLAP_PROBES  16u /* granules of one size; above that it is cheaper to look at all entries */

/* What a search has come upon. */
struct plan_overlap_found {
    unsigned lane; /* PLAN_COUNTS: nothing */
    bool gate;
};

/* The size class of a range: granules of 4 KiB << level are not smaller than it. */
static inline unsigned plan_overlap_level(uint64_t first, uint64_t last)
{
    /* At least 12 bits: the length less one, with the 12 lowest bits set. */
    return 52 - (unsigned)__builtin_clzll((last - first) | 0xfff);
}

static inline unsigned plan_overlap_shift(unsigned level)
{
    return 12 + level;
}

/* Neighbours get different buckets, and so do levels. */
static inline unsigned plan_overlap_bucket(unsigned level, uint64_t granule)
{
    return (unsigned)((granule ^ (uint64_t)level << 58) * UINT64_C(0x9e3779b97f4a7c15) >> 55);
}

_Static_assert(PLAN_OVERLAP_BUCKETS == 1u << (64 - 55), "the hash has as many bits as there are buckets");

static inline uint64_t plan_overlap_last(uint64_t addr, uint64_t len)
{
    return len - 1 > UINT64_MAX - addr ? UINT64_MAX : addr + (len - 1);
}

static inline unsigned plan_overlap_slot(uint64_t ticket)
{
    return (unsigned)(ticket % PLAN_OVERLAP_ENTRIES);
}

/* Whether something of an entry is not flushed, or not posted yet. */
static inline bool plan_overlap_open(const struct plan_overlap *table, unsigned slot, const uint64_t *flushed)
{
    const struct plan_overlap_entry *e = &table->entry[slot];
    if (e->state.how == PLAN_OVERLAP_WHOLE)
        return flushed[e->state.lane] < e->count;
    if (e->state.how < PLAN_OVERLAP_POSTED)
        return true;
    for (uint64_t left = e->lanes; left; left &= left - 1) {
        size_t k = (size_t)__builtin_ctzll(left);
        if (flushed[k] < table->count[k][slot])
            return true;
    }
    return false;
}

/* It overlaps something on this lane that is not flushed. */
static void plan_overlap_on(struct plan_overlap_found *found, unsigned k)
{
    found->gate |= k == PLAN_MESSAGE || (found->lane != PLAN_COUNTS && found->lane != k);
    found->lane = k;
}

/* An entry overlaps: what follows from it. */
static ATTR_SLOW void plan_overlap_judge(struct plan_overlap_found *found, const struct plan_overlap *table,
                                         unsigned slot, const uint64_t *flushed)
{
    const struct plan_overlap_entry *e = &table->entry[slot];
    unsigned lane = e->state.lane;
    switch ((enum plan_overlap_how)e->state.how) {
    case PLAN_OVERLAP_OPEN:
        *found = (struct plan_overlap_found){PLAN_MESSAGE, true};
        return;
    case PLAN_OVERLAP_BOUND:
        if (flushed[lane] != UINT64_MAX) /* on a dead lane nothing of it will come */
            plan_overlap_on(found, lane);
        return;
    case PLAN_OVERLAP_WHOLE:
        if (flushed[lane] < e->count)
            plan_overlap_on(found, lane);
        return;
    case PLAN_OVERLAP_POSTED:
        break;
    }
    for (uint32_t left = e->lanes; left; left &= left - 1) {
        unsigned k = (unsigned)__builtin_ctz(left);
        if (flushed[k] < table->count[k][slot])
            plan_overlap_on(found, k);
    }
}

static void plan_overlap_scan(const struct plan_overlap *table, const uint64_t *flushed, uint64_t before,
                              uint64_t first, uint64_t last, struct plan_overlap_found *found)
{
    for (uint64_t ticket = table->tail; ticket < min_u64(table->head, before); ticket++) {
        unsigned slot = plan_overlap_slot(ticket);
        if (table->entry[slot].first <= last && first <= table->entry[slot].last)
            plan_overlap_judge(found, table, slot, flushed);
    }
}

/* Whether the ops that did not fit have left anything to wait for. */
static bool plan_overlap_lost_open(const struct plan_overlap *table, const uint64_t *flushed)
{
    if (!table->lost || table->lost_open)
        return table->lost;
    for (unsigned k = 0; k < PLAN_COUNTS; k++) {
        if (flushed[k] < table->lost_count[k])
            return true;
    }
    return false;
}

/*
 * Looks up the granules of one level that a range touches. Links in chains are (ticket + 1) * 2, plus 1 for the second
 * granule of an entry; one that is below the tail, like 0, ends the chain.
 */
static inline void plan_overlap_probe(const struct plan_overlap *table, const uint64_t *flushed, uint64_t before,
                                      uint64_t first, uint64_t last, unsigned level, struct plan_overlap_found *found)
{
    unsigned shift = plan_overlap_shift(level);
    uint64_t oldest = (table->tail + 1) * 2;
    for (uint64_t granule = first >> shift; granule <= last >> shift; granule++) {
        uint64_t link = table->bucket[plan_overlap_bucket(level, granule)];
        while (link >= oldest) {
            uint64_t ticket = link / 2 - 1;
            const struct plan_overlap_entry *e = &table->entry[plan_overlap_slot(ticket)];
            if (e->first <= last && first <= e->last && ticket < before)
                plan_overlap_judge(found, table, plan_overlap_slot(ticket), flushed);
            link = e->link[link & 1];
        }
    }
}

#define PLAN_OVERLAP_WORD 8u /* bytes of a word */

/* Whether a range touches a word that ops are on their way to. */
static ATTR_SLOW bool plan_overlap_on_word(const struct plan_overlap *table, uint64_t first, uint64_t last)
{
    for (unsigned w = 0; w < PLAN_OVERLAP_WORDS; w++) {
        const struct plan_overlap_word *word = &table->words_at[w];
        if (word->entries && word->addr <= last && first <= word->addr + (PLAN_OVERLAP_WORD - 1))
            return true;
    }
    return false;
}

static inline bool plan_overlap_near_words(const struct plan_overlap *table, uint64_t first, uint64_t last)
{
    return table->words && table->word_first <= last && first <= table->word_last;
}

/* Whether a range touches the range of a run, between whose entries may be gaps, or a word. */
static inline bool plan_overlap_in_run(const struct plan_overlap *table, uint64_t first, uint64_t last)
{
    for (uint32_t left = table->runs; left; left &= left - 1) {
        const struct plan_overlap_run *run = &table->run[__builtin_ctz(left)];
        if (run->first <= last && first <= run->last)
            return true;
    }
    return plan_overlap_near_words(table, first, last) && plan_overlap_on_word(table, first, last);
}

/* The whole search, where the quick look at runs was not enough; `scan`: a run is touched, so look at all entries. */
static ATTR_SLOW enum plan_overlap_answer plan_overlap_search(const struct plan_overlap *table, const uint64_t *flushed,
                                                              uint64_t before, uint64_t first, uint64_t last, bool scan,
                                                              unsigned *lane)
{
    struct plan_overlap_found found = {PLAN_COUNTS, false};
    if (table->lost && table->lost_first <= last && first <= table->lost_last && plan_overlap_lost_open(table, flushed))
        return PLAN_OVERLAP_GATE;
    for (uint64_t levels = table->levels; levels && !scan; levels &= levels - 1) {
        unsigned level = (unsigned)__builtin_ctzll(levels);
        scan = (last - first) >> plan_overlap_shift(level) >= PLAN_OVERLAP_PROBES;
        if (!scan)
            plan_overlap_probe(table, flushed, before, first, last, level, &found);
    }
    if (scan)
        plan_overlap_scan(table, flushed, before, first, last, &found);
    if (found.lane == PLAN_COUNTS)
        return PLAN_OVERLAP_NONE;
    if (found.gate)
        return PLAN_OVERLAP_GATE;
    *lane = found.lane;
    return PLAN_OVERLAP_FOLLOW;
}

enum plan_overlap_answer plan_overlap_check(const struct plan_overlap *table, const uint64_t *flushed, uint64_t before,
                                            uint64_t addr, uint64_t len, unsigned *lane)
{
    uint64_t last = plan_overlap_last(addr, len);
    bool scan = plan_overlap_in_run(table, addr, last);
    if (!scan && !table->levels && !table->lost)
        return PLAN_OVERLAP_NONE;
    return plan_overlap_search(table, flushed, before, addr, last, scan, lane);
}

/* The run that grew last cannot grow past a new range that ends behind it. */
static inline void plan_overlap_obstacle(struct plan_overlap *table, uint64_t first, uint64_t last)
{
    if (last > table->run[table->recent].last)
        table->clear = min_u64(table->clear, first ? first - 1 : 0);
}

/* No place for a range of its own: it joins the one that stands for all such. */
static ATTR_SLOW uint64_t plan_overlap_lose(struct plan_overlap *table, uint64_t first, uint64_t last)
{
    plan_overlap_obstacle(table, first, last);
    if (!table->lost) {
        table->lost_first = first;
        table->lost_last = last;
        for (unsigned k = 0; k < PLAN_COUNTS; k++)
            table->lost_count[k] = 0;
        table->lost = true;
    }
    table->lost_first = min_u64(table->lost_first, first);
    table->lost_last = max_u64(table->lost_last, last);
    table->lost_open++;
    return PLAN_OVERLAP_LOST;
}

/* Whether a range may go on at the end of a run: behind it, with a gap that is not longer than the range. Not of one that is `same`,
 * which shrinks only when it is empty. */
static inline bool plan_overlap_extends(const struct plan_overlap_run *run, uint64_t first, uint64_t last)
{
    return first > run->last && first - run->last - 1 <= last - first && !run->same;
}

/* Whether a range is all of a run, whose entries so far are this range too. */
static inline bool plan_overlap_again(const struct plan_overlap *table, unsigned k, uint64_t first, uint64_t last)
{
    const struct plan_overlap_run *run = &table->run[k];
    return table->runs >> k & 1 && run->first == first && run->last == last && (run->same || run->entries == 1);
}

/* The run that a new entry goes on with, or a new one; PLAN_OVERLAP_RUNS where there is none. */
static ATTR_SLOW unsigned plan_overlap_find_run(struct plan_overlap *table, uint64_t first, uint64_t last)
{
    if (plan_overlap_again(table, table->word, first, last))
        return table->word;
    for (uint32_t left = table->runs; left; left &= left - 1) {
        unsigned k = (unsigned)__builtin_ctz(left);
        if (plan_overlap_extends(&table->run[k], first, last))
            return k;
        if (plan_overlap_again(table, k, first, last))
            return table->word = k;
    }
    unsigned k = (unsigned)__builtin_ctz(~table->runs);
    if (k < PLAN_OVERLAP_RUNS) {
        table->runs |= UINT32_C(1) << k;
        table->run[k] = (struct plan_overlap_run){.first = first};
    }
    return k;
}

/* Makes an entry that fits no run known to the hash. */
static ATTR_SLOW void plan_overlap_hash(struct plan_overlap *table, struct plan_overlap_entry *e, uint64_t ticket)
{
    bool first = !table->levels;
    table->hash_first = first ? e->first : min_u64(table->hash_first, e->first);
    table->hash_last = first ? e->last : max_u64(table->hash_last, e->last);
    plan_overlap_obstacle(table, e->first, e->last);
    unsigned level = plan_overlap_level(e->first, e->last), shift = plan_overlap_shift(level);
    uint64_t *bucket = &table->bucket[plan_overlap_bucket(level, e->first >> shift)];
    e->link[0] = *bucket;
    *bucket = (ticket + 1) * 2;
    if (e->first >> shift != e->last >> shift) {
        bucket = &table->bucket[plan_overlap_bucket(level, e->last >> shift)];
        e->link[1] = *bucket;
        *bucket = (ticket + 1) * 2 + 1;
    }
    table->levels |= UINT64_C(1) << level;
    table->newest[level] = ticket;
}

/* Some words lie behind the run that grows last. */
static void plan_overlap_words(struct plan_overlap *table)
{
    if (table->word_first > table->run[table->recent].last) {
        plan_overlap_obstacle(table, table->word_first, table->word_last);
        return;
    }
    for (unsigned w = 0; w < PLAN_OVERLAP_WORDS; w++) {
        const struct plan_overlap_word *word = &table->words_at[w];
        if (word->entries)
            plan_overlap_obstacle(table, word->addr, word->addr + (PLAN_OVERLAP_WORD - 1));
    }
}

/* Another run grows last: how far may it? That stays true while others go. */
static ATTR_SLOW void plan_overlap_turn(struct plan_overlap *table, unsigned recent)
{
    table->recent = recent;
    /* plan_overlap_append() reckons with no sum that wraps: it stays in the lower half of the addresses, where all are. */
    table->clear = table->run[recent].last > PLAN_OVERLAP_HALF ? 0 : PLAN_OVERLAP_HALF;
    for (uint32_t left = table->runs & ~(UINT32_C(1) << recent); left; left &= left - 1) {
        const struct plan_overlap_run *run = &table->run[__builtin_ctz(left)];
        plan_overlap_obstacle(table, run->first, run->last);
    }
    if (table->words && table->word_last > table->run[recent].last)
        plan_overlap_words(table);
    if (table->levels)
        plan_overlap_obstacle(table, table->hash_first, table->hash_last);
    if (table->lost)
        plan_overlap_obstacle(table, table->lost_first, table->lost_last);
}

/* The place of a word. The upper bits of the product depend on all of the address. */
static inline unsigned plan_overlap_place(uint64_t addr)
{
    return (unsigned)(addr * UINT64_C(0x9e3779b97f4a7c15) >> 58);
}

_Static_assert(PLAN_OVERLAP_WORDS == 1u << (64 - 58), "the hash has as many bits as there are places");

/* The first op to a word. */
static ATTR_SLOW void plan_overlap_begin_word(struct plan_overlap *table, struct plan_overlap_word *word, uint64_t addr)
{
    uint64_t last = addr + (PLAN_OVERLAP_WORD - 1);
    word->addr = addr;
    table->word_first = table->words ? min_u64(table->word_first, addr) : addr;
    table->word_last = table->words ? max_u64(table->word_last, last) : last;
    plan_overlap_obstacle(table, addr, last);
}

/* Whether a range is a word that has its place, or may have it. */
static inline bool plan_overlap_is_word(const struct plan_overlap *table, uint64_t addr, uint64_t len)
{
    const struct plan_overlap_word *word = &table->words_at[plan_overlap_place(addr)];
    return len == PLAN_OVERLAP_WORD && addr % PLAN_OVERLAP_WORD == 0 && (!word->entries || word->addr == addr);
}

static inline void plan_overlap_add_word(struct plan_overlap *table, struct plan_overlap_entry *e, uint64_t addr)
{
    unsigned w = plan_overlap_place(addr);
    struct plan_overlap_word *word = &table->words_at[w];
    if (!word->entries)
        plan_overlap_begin_word(table, word, addr);
    word->entries++;
    table->words++;
    e->state = (struct plan_overlap_state){.run = (uint8_t)(PLAN_OVERLAP_RUNS + 1 + w)};
}

uint64_t plan_overlap_add(struct plan_overlap *table, uint64_t addr, uint64_t len)
{
    uint64_t last = plan_overlap_last(addr, len), ticket = table->head;
    if (ticket - table->tail == PLAN_OVERLAP_ENTRIES || len > PLAN_OVERLAP_LONGEST)
        return plan_overlap_lose(table, addr, last);
    struct plan_overlap_entry *e = &table->entry[plan_overlap_slot(ticket)];
    unsigned run = table->recent;
    bool grows = table->runs >> run & 1 && plan_overlap_extends(&table->run[run], addr, last);
    e->first = addr;
    e->last = last;
    e->lanes = 0;
    table->head = ticket + 1;
    if (!grows && plan_overlap_is_word(table, addr, len)) {
        plan_overlap_add_word(table, e, addr);
        return ticket;
    }
    if (!grows)
        run = plan_overlap_find_run(table, addr, last);
    e->state = (struct plan_overlap_state){.run = (uint8_t)run};
    if (run == PLAN_OVERLAP_RUNS) {
        plan_overlap_hash(table, e, ticket);
        return ticket;
    }
    if (table->run[run].entries++ > 0 && table->run[run].last == last) { /* it has this range already: nothing grows */
        table->run[run].same = true;
        if (run == table->recent)
            table->clear = 0; /* nor may plan_overlap_append() go on with it */
        return ticket;
    }
    table->run[run].last = last;
    /* One that begins is none yet that grows: a signal word between puts does not turn the eye from their run. */
    bool recent = run == table->recent, used = table->runs >> table->recent & 1;
    if (recent ? table->clear <= last : table->run[run].entries > 1 || !used)
        plan_overlap_turn(table, run);
    else if (!recent)
        plan_overlap_obstacle(table, addr, last);
    return ticket;
}

bool plan_overlap_append(struct plan_overlap *table, uint64_t addr, uint64_t len, uint64_t *ticket)
{
    uint64_t head = table->head, clear = table->clear;
    unsigned recent = table->recent;
    struct plan_overlap_run *run = &table->run[recent];
    uint64_t last = addr + (len - 1);
    /* plan_overlap_extends() in one comparison: below the run's end the left side is beyond any length. */
    if (addr - run->last - 1 >= len || last > clear || head - table->tail == PLAN_OVERLAP_ENTRIES)
        return false;
    struct plan_overlap_entry *e = &table->entry[plan_overlap_slot(head)];
    e->first = addr;
    e->last = run->last = last;
    e->lanes = 0;
    e->state = (struct plan_overlap_state){.run = (uint8_t)recent, .how = table->fresh};
    run->entries++;
    table->head = head + 1;
    *ticket = head;
    return true;
}

bool plan_overlap_apart(struct plan_overlap *table, uint64_t addr, uint64_t len, uint64_t *ticket)
{
    if (table->levels || table->lost || table->head - table->tail == PLAN_OVERLAP_ENTRIES ||
        len > PLAN_OVERLAP_LONGEST || plan_overlap_in_run(table, addr, plan_overlap_last(addr, len)))
        return false;
    *ticket = plan_overlap_add(table, addr, len);
    table->entry[plan_overlap_slot(*ticket)].state.how = table->fresh;
    return true;
}

void plan_overlap_posted(struct plan_overlap *table, uint64_t ticket, unsigned lane, uint64_t count, bool last)
{
    if (ticket == PLAN_OVERLAP_LOST) {
        table->lost_count[lane] = max_u64(table->lost_count[lane], count);
        table->lost_open -= last;
        return;
    }
    struct plan_overlap_entry *e = &table->entry[plan_overlap_slot(ticket)];
    table->count[lane][plan_overlap_slot(ticket)] = count;
    e->lanes |= UINT32_C(1) << lane;
    if (last)
        e->state.how = PLAN_OVERLAP_POSTED;
}

void plan_overlap_all_posted(struct plan_overlap *table, uint64_t ticket)
{
    if (ticket == PLAN_OVERLAP_LOST)
        table->lost_open--;
    else
        table->entry[plan_overlap_slot(ticket)].state.how = PLAN_OVERLAP_POSTED;
}

/* Entries that lay in a run go from its front; `last`: the end of the last of them. */
static inline void plan_overlap_shrink(struct plan_overlap *table, unsigned k, uint64_t last, uint32_t entries)
{
    if (k > PLAN_OVERLAP_RUNS) {
        table->words_at[k - PLAN_OVERLAP_RUNS - 1].entries -= entries;
        table->words -= entries;
        return;
    }
    struct plan_overlap_run *run = &table->run[k];
    if (k == PLAN_OVERLAP_RUNS)
        return;
    run->entries -= entries;
    if (run->entries > 0) {
        run->first = run->same ? run->first : last + 1;
        return;
    }
    table->runs &= ~(UINT32_C(1) << k);
    if (k == table->recent)
        table->clear = 0;
}

static inline uint32_t plan_overlap_same(const struct plan_overlap_entry *e)
{
    uint32_t same;
    memcpy(&same, &e->state, sizeof(same));
    return same;
}

_Static_assert(sizeof(struct plan_overlap_state) == sizeof(uint32_t), "states are compared as one number");

/* The end of the stretch from `tail` on of entries that went out whole on one lane, lie in one run, and are flushed. */
static inline uint64_t plan_overlap_stretch(const struct plan_overlap *table, uint64_t tail, const uint64_t *flushed)
{
    const struct plan_overlap_entry *e = &table->entry[plan_overlap_slot(tail)];
    uint64_t head = table->head, seen = flushed[e->state.lane];
    uint32_t same = plan_overlap_same(e);
    do {
        e = &table->entry[plan_overlap_slot(tail)];
        if (plan_overlap_same(e) != same || e->count > seen)
            break;
    } while (++tail != head);
    return tail;
}

/* Forgets entries of one kind from `tail` on; the next tail. */
static inline uint64_t plan_overlap_forget(struct plan_overlap *table, uint64_t tail, const uint64_t *flushed)
{
    unsigned slot = plan_overlap_slot(tail), run = table->entry[slot].state.run;
    uint64_t end;
    if (table->entry[slot].state.how == PLAN_OVERLAP_WHOLE)
        end = plan_overlap_stretch(table, tail, flushed);
    else
        end = tail + !plan_overlap_open(table, slot, flushed);
    if (end != tail)
        plan_overlap_shrink(table, run, table->entry[plan_overlap_slot(end - 1)].last, (uint32_t)(end - tail));
    return end;
}

void plan_overlap_trim(struct plan_overlap *table, const uint64_t *flushed)
{
    uint64_t tail = table->tail, next;
    while (tail != table->head && (next = plan_overlap_forget(table, tail, flushed)) != tail)
        tail = next;
    table->tail = tail;
    for (uint64_t levels = table->levels; levels; levels &= levels - 1) {
        if (table->newest[__builtin_ctzll(levels)] < table->tail)
            table->levels &= ~(levels & -levels);
    }
    if (table->lost && !plan_overlap_lost_open(table, flushed))
        table->lost = false;
}
