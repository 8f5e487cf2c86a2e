/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_smi_table.c - finds the table of `nvidia-smi topo` among lines, and reads its header, rows and legend into cells.
 * May not fill in what a row does not say. Called by import_smi.c; next: import_smi_line.c
 */
#include "import_smi_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SMI_WINDOW 400 /* lines below a header in which its rows are */
#define SMI_HEADS  64  /* lines that begin as a header does, in a text that has one */

/* ---- the header --------------------------------------------------------------------------------------------------------- */

static int smi_label_find(const struct smi_table *t, const char *text, size_t len)
{
    for (unsigned i = 0; i < t->columns; i++) {
        if (strlen(t->label[i].name) == len && memcmp(t->label[i].name, text, len) == 0)
            return (int)i;
    }
    return -1;
}

/* How long a "GPU12" or "NIC3" at the beginning of text is; 0: there is none. */
static size_t smi_label_len(const char *text, size_t len)
{
    size_t n = 3;
    if (len < 4 || (memcmp(text, "GPU", 3) != 0 && memcmp(text, "NIC", 3) != 0))
        return 0;
    while (n < len && text[n] >= '0' && text[n] <= '9')
        n++;
    return n > 3 && n <= 7 ? n : 0;
}

static bool smi_label_add(struct smi_table *t, const char *text, size_t len)
{
    if (t->columns == SMI_COLUMNS || !smi_device_name(text, len))
        return false;
    struct smi_label *label = &t->label[t->columns++];
    *label = (struct smi_label){.gpu = smi_numbered(text, len, "GPU"), .numa = -1};
    memcpy(label->name, text, len);
    return true;
}

/* The length of the longest first word of a line below that text begins with, and that is followed by a cell; 0: none. */
static size_t smi_row_name(const struct smi_table *t, unsigned head, const char *text, size_t len)
{
    size_t best = 0;
    for (unsigned n = head + 1; n < t->text->count && n < head + SMI_WINDOW; n++) {
        struct smi_word word, cell;
        size_t at = 0, used;
        if (smi_word_next(&t->text->line[n], &at, &word) && word.len <= len && word.len > best &&
            memcmp(word.text, text, word.len) == 0 && smi_word_next(&t->text->line[n], &at, &cell) &&
            smi_cell(cell.text, cell.len, &used) != SMI_NONE)
            best = word.len;
    }
    return best;
}

/* Takes a word of the header apart into labels: 1; 0 where what is after the labels begins; -1 where it is no header. */
static int smi_head_word(struct smi_table *t, unsigned head, const struct smi_word *word)
{
    for (size_t at = 0; at < word->len;) {
        const char *text = word->text + at;
        size_t left = word->len - at, n = smi_label_len(text, left);
        if ((left >= 3 && (memcmp(text, "CPU", 3) == 0 || (left == 3 && memcmp(text, "GPU", 3) == 0))) ||
            (left == 4 && memcmp(text, "NUMA", 4) == 0))
            return 0;
        if (!n)
            n = smi_row_name(t, head, text, left); /* names that run together are told apart by their rows */
        if (!n || (n < left && !smi_label_len(text + n, left - n) && !smi_row_name(t, head, text + n, left - n) &&
                   memcmp(text + n, "CPU", min_u64(3, left - n)) != 0))
            n = left;
        if (!smi_label_add(t, text, n))
            return -1;
        if (n < left)
            topo_note(t->host, "line %u: the names %s run together and were told apart by rows of the table",
                      t->text->line[head].number, t->label[t->columns - 1].name);
        at += n;
    }
    return 1;
}

/* The row that a line is, and where its cells begin; -1: it is none. The name may run into the first cell. */
static int smi_row_label(const struct smi_table *t, const struct smi_line *line, size_t *at)
{
    struct smi_word word, cell;
    size_t used;
    if (!smi_word_next(line, at, &word))
        return -1;
    int i = smi_label_find(t, word.text, word.len);
    if (i >= 0) {
        size_t then = *at;
        return smi_word_next(line, &then, &cell) && smi_cell(cell.text, cell.len, &used) != SMI_NONE ? i : -1;
    }
    for (size_t n = word.len - 1; n > 0; n--) {
        i = smi_label_find(t, word.text, n);
        if (i >= 0 && smi_cell(word.text + n, word.len - n, &used) != SMI_NONE) {
            *at -= word.len - n;
            return i;
        }
    }
    return -1;
}

/* Whether a row of the table is below its header. */
static bool smi_row_below(const struct smi_table *t, unsigned head)
{
    for (unsigned n = head + 1; n < t->text->count && n < head + SMI_WINDOW; n++) {
        size_t at = 0;
        if (smi_row_label(t, &t->text->line[n], &at) >= 0)
            return true;
    }
    return false;
}

/* Whether the line names columns, which are then the table's. Counts lines that might. */
static bool smi_head(struct smi_table *t, unsigned head, unsigned *tries)
{
    const struct smi_line *line = &t->text->line[head];
    struct smi_word word, next;
    size_t at = 0, then, used;
    int more = 1;
    unsigned notes = t->host->notes;
    t->columns = 0;
    if (!smi_word_next(line, &at, &word) || smi_label_len(word.text, word.len) == 0 || word.text[0] != 'G')
        return false;
    then = at;
    if (smi_word_next(line, &then, &next) && smi_cell(next.text, next.len, &used) != SMI_NONE && used == next.len)
        return false; /* a row */
    ++*tries;
    do
        more = smi_head_word(t, head, &word);
    while (more > 0 && smi_word_next(line, &at, &word));
    bool row = t->columns && smi_row_below(t, head);
    if (more < 0 || !row)
        t->host->notes = notes;
    t->head = head;
    return more >= 0 && row;
}

static int smi_head_check(struct smi_table *t)
{
    unsigned gpus = 0;
    for (unsigned i = 0; i < t->columns; i++) {
        gpus += t->label[i].gpu;
        if (smi_label_find(t, t->label[i].name, strlen(t->label[i].name)) != (int)i)
            return import_fail(t->error, t->text->line[t->head].number, 1, "seen the column %s twice, expected once",
                               t->label[i].name);
    }
    if (gpus > TOPO_GPUS || t->columns - gpus > TOPO_PORTS)
        return import_fail(t->error, t->text->line[t->head].number, 1,
                           "seen %u GPUs and %u devices, expected at most %d and %d", gpus, t->columns - gpus,
                           TOPO_GPUS, TOPO_PORTS);
    return 0;
}

/* ---- rows --------------------------------------------------------------------------------------------------------------- */

/* A row as it is being read. */
struct smi_row {
    unsigned self; /* its column */
    unsigned count;
    uint8_t cell[SMI_COLUMNS];
    uint16_t at[SMI_COLUMNS];
    size_t end; /* of what was read, in the line */
};

/* Whether a word that is no cell stands where one was, so that it counts as one. */
static bool smi_misread(const struct smi_word *word)
{
    if (word->len > 5 || !((word->text[0] | 32) >= 'a' && (word->text[0] | 32) <= 'z'))
        return false;
    for (unsigned i = 0; i < word->len; i++) {
        char c = word->text[i];
        if (!((c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '?' || c == '_'))
            return false;
    }
    return true;
}

static void smi_row_put(struct smi_row *row, int cell, unsigned column)
{
    row->cell[row->count] = (uint8_t)cell;
    row->at[row->count++] = (uint16_t)min_u64(column, UINT16_MAX);
}

/* Cells by words, which may run together. */
static void smi_row_words(const struct smi_table *t, const struct smi_line *line, size_t at, struct smi_row *row)
{
    struct smi_word word;
    row->count = 0;
    row->end = at;
    while (row->count < t->columns && smi_word_next(line, &at, &word)) {
        size_t pos = 0, used;
        int cell;
        while (pos < word.len && row->count < t->columns &&
               (cell = smi_cell(word.text + pos, word.len - pos, &used)) != SMI_NONE) {
            smi_row_put(row, cell, word.column + (unsigned)pos);
            pos += used;
        }
        row->end = at - word.len + pos;
        if (pos == word.len)
            continue;
        if (pos > 0 || !smi_misread(&word))
            return;
        smi_row_put(row, SMI_NONE, word.column);
        row->end = at;
    }
}

/* Cells by tabs: an empty one has its place. False where one of them is two. */
static bool smi_row_tabs(const struct smi_table *t, const struct smi_line *line, size_t at, struct smi_row *row)
{
    row->count = 0;
    if (line->text[at] == '\t')
        at++;
    while (row->count < t->columns) {
        size_t len = strcspn(line->text + at, "\t"), skip = strspn(line->text + at, " "), used = 0;
        size_t end = at + len;
        const char *text = line->text + at + (skip < len ? skip : len);
        size_t left = (size_t)(line->text + end - text);
        while (left && text[left - 1] == ' ')
            left--;
        int cell = smi_cell(text, left, &used);
        if (cell != SMI_NONE && used != left)
            return false;
        smi_row_put(row, cell, line->column[at]);
        row->end = end;
        if (!line->text[end])
            break;
        at = end + 1;
    }
    return true;
}

static bool smi_row_fits(const struct smi_table *t, const struct smi_row *row)
{
    return row->count == t->columns && row->cell[row->self] == SMI_SELF;
}

/* Whether the line ends with the cells: it was cut there. */
static bool smi_row_cut(const struct smi_line *line, const struct smi_row *row)
{
    return line->text[row->end + strspn(line->text + row->end, " \t")] == '\0';
}

/* ---- the NUMA node behind the cells --------------------------------------------------------------------------------------- */

static void smi_row_numa(struct smi_table *t, const struct smi_line *line, const struct smi_row *row)
{
    const char *rest = line->text + row->end, *text = "";
    size_t len = 0;
    if (*rest == '\t') { /* CPUs, node, each with a place of its own */
        text = rest + 1 + strcspn(rest + 1, "\t");
        text += *text == '\t';
        len = strcspn(text, "\t");
    } else {
        struct smi_word word;
        unsigned words = 0;
        for (size_t at = row->end;
             smi_word_next(line, &at, &word) && memcmp(word.text, "N/A", min_u64(word.len, 3)) != 0;)
            if (++words == 2) {
                text = word.text;
                len = word.len;
            }
        t->unknown += words == 1;
    }
    size_t digits = strspn(text, "0123456789");
    if (digits && digits == len && len < 5)
        t->label[row->self].numa = (int)strtol(text, NULL, 10);
    else if (len && text[digits] == '-')
        t->ranges++;
}

static int smi_row_read(struct smi_table *t, const struct smi_line *line, unsigned self, size_t at)
{
    struct smi_row row = {.self = self}, other = {.self = self};
    struct smi_label *label = &t->label[self];
    if (label->line)
        return import_fail(t->error, line->number, 1,
                           "seen a second row of %s, the first is in line %u, expected one table", label->name,
                           label->line);
    smi_row_words(t, line, at, &row);
    if (!smi_row_fits(t, &row) && strchr(line->text, '\t') && smi_row_tabs(t, line, at, &other) && other.count > self &&
        other.cell[self] == SMI_SELF)
        row = other;
    if (row.count <= self || row.cell[self] != SMI_SELF || (row.count < t->columns && !smi_row_cut(line, &row)))
        return import_fail(
            t->error, line->number, line->column[row.end],
            "seen %u cells in the row of %s, expected %u with X in place %u: a cell is missing, and nothing "
            "tells which",
            row.count, label->name, t->columns, self + 1);
    label->line = line->number;
    for (unsigned j = 0; j < t->columns; j++) {
        t->cell[self][j] = j < row.count ? row.cell[j] : SMI_NONE;
        t->at[self][j] = j < row.count ? row.at[j] : (uint16_t)min_u64(line->column[row.end], UINT16_MAX);
    }
    if (label->gpu && row.count == t->columns)
        smi_row_numa(t, line, &row);
    return 0;
}

/* ---- the legend, and all together ---------------------------------------------------------------------------------------- */

/* "  NIC0: mlx5_0" */
static int smi_legend(struct smi_table *t, const struct smi_line *line)
{
    struct smi_word word, dev;
    size_t at = 0;
    if (!smi_word_next(line, &at, &word) || word.len < 2 || !smi_word_next(line, &at, &dev))
        return 0;
    if (dev.len == 1 && dev.text[0] == ':') {
        if (!smi_word_next(line, &at, &dev))
            return 0;
    } else if (word.text[word.len - 1] == ':') {
        word.len--;
    } else {
        return 0;
    }
    if (!smi_numbered(word.text, word.len, "NIC") || !smi_device_name(dev.text, dev.len))
        return 0;
    int i = smi_label_find(t, word.text, word.len);
    if (i < 0) {
        topo_note(t->host, "the legend names %.*s (%.*s), for which the table has no column", (int)word.len, word.text,
                  (int)dev.len, dev.text);
        t->host->damaged = true;
        return 0;
    }
    for (unsigned j = 0; j < t->columns; j++) {
        if (j != (unsigned)i && strlen(t->label[j].dev) == dev.len && memcmp(t->label[j].dev, dev.text, dev.len) == 0)
            return import_fail(t->error, line->number, dev.column,
                               "seen %s for %.*s and for %s, expected one name for each", t->label[j].dev,
                               (int)word.len, word.text, t->label[j].name);
    }
    snprintf(t->label[i].dev, sizeof(t->label[i].dev), "%.*s", (int)dev.len, dev.text);
    return 0;
}

int smi_table_read(struct smi_table *t)
{
    unsigned n = 0, tries = 0;
    while (n < t->text->count && tries < SMI_HEADS && !smi_head(t, n, &tries))
        n++;
    if (n == t->text->count || tries == SMI_HEADS)
        return import_fail(
            t->error, 1, 1,
            "seen no line that names GPUs and devices with rows below it, expected the table of nvidia-smi "
            "topo -m, from the line that begins with GPU0");
    int rc = smi_head_check(t);
    for (n++; n < t->text->count && !rc; n++) {
        const struct smi_line *line = &t->text->line[n];
        size_t at = 0;
        int self = smi_row_label(t, line, &at);
        rc = self >= 0 ? smi_row_read(t, line, (unsigned)self, at) : smi_legend(t, line);
    }
    if (t->ranges)
        topo_note(t->host, "the NUMA affinity of %u GPUs is a range, as in virtual machines without nodes", t->ranges);
    if (t->unknown)
        topo_note(t->host, "the NUMA affinity of %u GPUs runs into their CPUs and is not known", t->unknown);
    return rc;
}
