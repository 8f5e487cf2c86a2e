/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litmus_report.c - what came out of a board, as tables and as TAP, with a command for each first bad seed. Called by
 * litmus.c last.
 */
#include "litmus_board.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LITMUS_SHOWN = 20 /* bad cells that are shown in full */ };

bool litmus_cell_good(const struct litmus_cell *cell)
{
    if (cell->failed || cell->done == 0)
        return cell->failed == 0; /* another shard has it */
    if (cell->rule)
        return cell->bad > 0;
    return cell->c.kind != LITMUS_JUDGED || cell->bad == 0;
}

bool litmus_report_good(const struct litmus_board *b)
{
    bool good = true;

    for (unsigned i = 0; i < b->n_cells; i++)
        good = good && litmus_cell_good(&b->cell[i]);
    return good;
}

static const struct litmus_cell *litmus_find(const struct litmus_board *b, const struct litmus_test *t,
                                             enum litmus_mode mode, enum litmus_kind kind, int ports)
{
    for (unsigned i = 0; i < b->n_cells; i++) {
        const struct litmus_cell *cell = &b->cell[i];

        if (!cell->rule && cell->c.test == t && cell->c.mode == mode && cell->c.kind == kind && cell->c.ports == ports)
            return cell;
    }
    return NULL;
}

/** How to see it again. */
static void litmus_again(const struct litmus_cell *cell, const char *before)
{
    if (!cell->text[0])
        return;
    printf("%s%s\n%s  again: litmus --test %s", before, cell->text, before, cell->c.test->name);
    if (cell->rule)
        printf(" --fault '%s'", cell->rule->rule);
    else
        printf(" --mode %s --kind %s", litmus_mode_name(cell->c.mode), litmus_kind_name(cell->c.kind));
    printf(" --ports %d --from %" PRIu64 " --count 1 --verbose\n", cell->told_ports, cell->told_seed);
}

/** One mode and kind: tests down, ports across. Nothing where no cell is there. */
static void litmus_table(const struct litmus_board *b, enum litmus_mode mode, enum litmus_kind kind)
{
    static const char *const titles[] = {"judged: none may be there", "counted: acknowledgements before visibility",
                                         "counted: placement=auto on devices that place out of order silently"};
    const struct litmus_test *t;
    bool head = false;

    for (unsigned i = 0; (t = litmus_test_at(i)); i++) {
        const struct litmus_cell *cell = NULL;
        uint64_t conclusions = 0;

        for (int k = 0; k < LITMUS_PORT_COUNTS && !cell; k++)
            cell = litmus_find(b, t, mode, kind, litmus_port_counts[k]);
        if (!cell)
            continue;
        if (!head)
            printf("\n%s, violating seeds / seeds (%s)\n%-18s %13s %13s %13s %13s %13s %12s\n", litmus_mode_name(mode),
                   titles[kind], "test", "1 port", "2 ports", "3 ports", "4 ports", "8 ports", "conclusions");
        head = true;
        printf("%-18s", t->name);
        for (int k = 0; k < LITMUS_PORT_COUNTS; k++) {
            char text[32] = "";

            cell = litmus_find(b, t, mode, kind, litmus_port_counts[k]);
            if (cell)
                snprintf(text, sizeof(text), "%" PRIu64 "/%" PRIu64 "%s", cell->bad, cell->done,
                         cell->failed ? "!" : "");
            conclusions += cell ? cell->conclusions : 0;
            printf(" %13s", text);
        }
        printf(" %12" PRIu64 "\n", conclusions);
    }
}

static void litmus_rule_table(const struct litmus_board *b)
{
    bool head = false;

    for (unsigned i = 0; i < b->n_cells; i++) {
        const struct litmus_cell *cell = &b->cell[i];

        if (!cell->rule)
            continue;
        if (!head)
            printf("\neach rule off alone: violations must be seen\n%-20s %-18s %16s  %s\n", "rule off", "test",
                   "violating/seeds", "verdict");
        head = true;
        printf("%-20s %-18s %9" PRIu64 "/%-6" PRIu64 "  %s\n", cell->rule->rule, cell->c.test->name, cell->bad,
               cell->done, litmus_cell_good(cell) ? "seen" : "NOT SEEN");
    }
}

void litmus_report_tables(const struct litmus_board *b)
{
    unsigned shown = 0;

    for (int kind = 0; kind < LITMUS_KINDS; kind++) {
        for (int mode = 0; mode < LITMUS_MODES; mode++)
            litmus_table(b, (enum litmus_mode)mode, (enum litmus_kind)kind);
    }
    litmus_rule_table(b);
    printf("\n%" PRIu64 " simulations; emulated (%s time)\n", b->simulations,
           b->n_cells && b->cell[0].c.real ? "real" : "virtual");
    for (unsigned i = 0; i < b->n_cells; i++) {
        const struct litmus_cell *cell = &b->cell[i];

        if (litmus_cell_good(cell) || ++shown > LITMUS_SHOWN)
            continue;
        printf("\nBAD: %s, %s, %s%s%s: %" PRIu64 " of %" PRIu64 " seeds violate, %" PRIu64 " failed\n",
               cell->c.test->name, litmus_mode_name(cell->c.mode), litmus_kind_name(cell->c.kind),
               cell->rule ? ", rule off: " : "", cell->rule ? cell->rule->rule : "", cell->bad, cell->done,
               cell->failed);
        litmus_again(cell, "  ");
    }
    if (shown > LITMUS_SHOWN)
        printf("\n... and %u more\n", shown - LITMUS_SHOWN);
}

/** A test, mode and kind over all ports is one point. */
static bool litmus_same_point(const struct litmus_cell *a, const struct litmus_cell *c)
{
    return a->rule == c->rule && a->c.test == c->c.test && a->c.mode == c->c.mode && a->c.kind == c->c.kind;
}

void litmus_report_tap(const struct litmus_board *b)
{
    unsigned points = 0;

    for (unsigned i = 0; i < b->n_cells;) {
        const struct litmus_cell *first = &b->cell[i];
        uint64_t bad = 0, done = 0;
        bool good = true;

        for (; i < b->n_cells && litmus_same_point(first, &b->cell[i]); i++) {
            bad += b->cell[i].bad;
            done += b->cell[i].done;
            good = good && litmus_cell_good(&b->cell[i]);
            if (!litmus_cell_good(&b->cell[i]))
                litmus_again(&b->cell[i], "# ");
        }
        printf("%s %u - %s_%s%s%s: %" PRIu64 " of %" PRIu64 " seeds violate\n", good ? "ok" : "not ok", ++points,
               first->c.test->name, litmus_mode_name(first->c.mode), first->rule ? "_without_" : "",
               first->rule ? first->rule->rule : "", bad, done);
    }
    printf("1..%u\n", points);
}
