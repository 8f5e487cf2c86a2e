/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_spec.c - reads the FABRIC SPEC. Text from users: every word is checked, nothing is guessed.
 * Called by emu_sim.c; next: emu_spec_check.c for relations between keys. emu_spec_print.c is the way back.
 */
#include "emu_spec_int.h"
#include "emu_unkind.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EMU_SPEC_FILE_MAX = 65536, EMU_SPEC_WORD = 1024 /* a rate for each of 32 ports */ };

struct emu_spec_unit {
    const char *name;
    double factor;
};

static const struct emu_spec_unit emu_spec_rate_units[] = {{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"", 1}, {NULL, 0}};
static const struct emu_spec_unit emu_spec_time_units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
static const struct emu_spec_unit emu_spec_byte_units[] = {
    {"K", 1024}, {"M", 1048576}, {"G", 1073741824}, {"", 1}, {NULL, 0}};
static const struct emu_spec_unit emu_spec_no_units[] = {{"", 1}, {NULL, 0}};

int emu_spec_fail(const struct emu_spec_at *at, const char *format, ...)
{
    const char *line = at->text;
    unsigned lines = 1;
    va_list ap;
    int n;

    for (const char *p = at->text; p < at->pos; p++) {
        if (*p == '\n') {
            line = p + 1;
            lines++;
        }
    }
    if (at->file)
        n = snprintf(at->why, at->why_len, "fabric: %s: at line %u, character %zu: ", at->file, lines,
                     (size_t)(at->pos - line) + 1);
    else
        n = snprintf(at->why, at->why_len, "fabric: at character %zu: ", (size_t)(at->pos - at->text) + 1);
    va_start(ap, format);
    if (n >= 0 && (size_t)n < at->why_len)
        vsnprintf(at->why + n, at->why_len - (size_t)n, format, ap);
    va_end(ap);
    return -EINVAL;
}

const char *emu_spec_word(const char *pos, size_t *len)
{
    for (;;) {
        pos += strspn(pos, ", \t\r\n");
        if (*pos != '#')
            break;
        pos += strcspn(pos, "\n"); /* a comment in a file */
    }
    *len = strcspn(pos, ", \t\r\n");
    return *len ? pos : NULL;
}

/** A number with one of the units, in [low, high] after scaling. */
static int emu_spec_number(const struct emu_spec_at *at, const char *key, const char *word,
                           const struct emu_spec_unit *units, double low, double high, double *out)
{
    bool unitless = units == emu_spec_no_units;
    char *end;
    double v;

    if (word[0] == '\0' || strchr("+-.0123456789", word[0]) == NULL)
        return emu_spec_fail(at, "%s: seen \"%s\", expected a number", key, word);
    v = strtod(word, &end);
    for (; units->name; units++) {
        if (strcmp(end, units->name) == 0)
            break;
    }
    if (end == word || !units->name || !isfinite(v))
        return emu_spec_fail(at, "%s: seen \"%s\", expected a number%s", key, word,
                             unitless ? "" : " with its unit (200G; 2.5us)");
    v *= units->factor;
    if (v < low || v > high)
        return emu_spec_fail(at, "%s: seen \"%s\", expected %g to %g", key, word, low, high);
    *out = v;
    return 0;
}

static int emu_spec_int(const struct emu_spec_at *at, const char *key, const char *word, int low, int high, int *out)
{
    char *end;
    long v;

    errno = 0;
    v = strtol(word, &end, 10);
    if (end == word || *end != '\0' || errno || v < low || v > high)
        return emu_spec_fail(at, "%s: seen \"%s\", expected a whole number from %d to %d", key, word, low, high);
    *out = (int)v;
    return 0;
}

static int emu_spec_time(const struct emu_spec_at *at, const char *key, const char *word, uint64_t *out)
{
    double v = 0;
    int rc = emu_spec_number(at, key, word, emu_spec_time_units, 0, 1e11, &v);

    if (rc == 0)
        *out = (uint64_t)llround(v);
    return rc;
}

static int emu_spec_rates(const struct emu_spec_at *at, const char *word, struct emu_spec *s)
{
    char one[EMU_SPEC_WORD];
    int n = 0;

    for (const char *p = word;; p++) {
        size_t len = strcspn(p, ":");
        double v = 0;

        if (n == EMU_SPEC_PORTS)
            return emu_spec_fail(at, "rate: seen more than %d rates, expected one a port at most", EMU_SPEC_PORTS);
        snprintf(one, sizeof(one), "%.*s", (int)len, p);
        if (emu_spec_number(at, "rate", one, emu_spec_rate_units, 1e6, 1e13, &v))
            return -EINVAL;
        s->rate_bits[n++] = (uint64_t)llround(v);
        p += len;
        if (*p == '\0')
            break;
    }
    s->n_rates = n;
    return 0;
}

/** Reads prefix and a number behind it; moves on. */
static bool emu_spec_numbered(const char **text, const char *prefix, int *out)
{
    size_t len = strlen(prefix);
    char *end;
    long v;

    if (strncmp(*text, prefix, len) != 0 || (*text)[len] < '0' || (*text)[len] > '9')
        return false;
    v = strtol(*text + len, &end, 10);
    if (v > 1000000)
        return false;
    *out = (int)v;
    *text = end;
    return true;
}

static int emu_spec_port(const struct emu_spec_at *at, const char *port, struct emu_place *out)
{
    const char *p = port;
    bool ok = emu_spec_numbered(&p, "h", &out->host) && emu_spec_numbered(&p, "/mlx5_", &out->dev) &&
              strncmp(p, ":1", 2) == 0;

    out->wire = 0;
    if (ok && p[2]) { /* a wire of it */
        p += 2;
        ok = emu_spec_numbered(&p, ".", &out->wire) && *p == '\0' && out->wire > 0;
    }
    if (!ok)
        return emu_spec_fail(at, "seen \"%s\", expected a port such as h0/mlx5_0:1 (each device has one port)", port);
    return 0;
}

static int emu_spec_change_at(const struct emu_spec_at *at, const char *kind, const char *port, const char *value,
                              struct emu_change *out)
{
    struct emu_change c = {.at_ns = out->at_ns};
    int rc;

    while (emu_change_name(c.kind) && strcmp(emu_change_name(c.kind), kind) != 0)
        c.kind++;
    if (!emu_change_name(c.kind))
        return emu_spec_fail(at, "seen \"%s\", expected down, up, stall, slow, loss or delay", kind);
    rc = emu_spec_port(at, port, &c.port);
    if (rc)
        return rc;
    if (c.kind < EMU_CHANGE_SLOW)
        rc = value ? emu_spec_fail(at, "seen \"%s\" behind %s, expected nothing", value, kind) : 0;
    else if (!value)
        rc = emu_spec_fail(at, "%s: seen no value, expected one behind the port", kind);
    else if (c.kind == EMU_CHANGE_DELAY)
        rc = emu_spec_number(at, kind, value, emu_spec_time_units, 0, 1e10, &c.value);
    else
        rc = emu_spec_number(at, kind, value, emu_spec_no_units, c.kind == EMU_CHANGE_SLOW ? 1e-6 : 0, 1, &c.value);
    if (rc == 0)
        *out = c;
    return rc;
}

int emu_spec_change(const char *kind, const char *port, const char *value, struct emu_change *out, char *why,
                    size_t why_len)
{
    struct emu_spec_at at = {kind, kind, NULL, why, why_len};

    return emu_spec_change_at(&at, kind, port, value, out);
}

/** "2ms:slow:h0/mlx5_0:1:0.5": the port itself holds a colon, so the pieces are counted from the front. */
static int emu_spec_timed(const struct emu_spec_at *at, const char *word, struct emu_spec *s)
{
    char copy[EMU_SPEC_WORD], *kind, *port, *tail, *value = NULL;
    struct emu_change c = {0};
    int rc;

    if (s->n_changes == EMU_SPEC_CHANGES)
        return emu_spec_fail(at, "seen more than %d timed changes", EMU_SPEC_CHANGES);
    snprintf(copy, sizeof(copy), "%s", word);
    kind = strchr(copy, ':');
    port = kind ? strchr(kind + 1, ':') : NULL;
    tail = port ? strchr(port + 1, ':') : NULL;
    if (!tail)
        return emu_spec_fail(at, "at: seen \"%s\", expected TIME:down|up|stall|slow|loss|delay:PORT[:VALUE]", word);
    *kind++ = '\0';
    *port++ = '\0';
    tail = strchr(tail + 1, ':');
    if (tail) {
        *tail = '\0';
        value = tail + 1;
    }
    rc = emu_spec_time(at, "at", copy, &c.at_ns);
    if (rc == 0)
        rc = emu_spec_change_at(at, kind, port, value, &c);
    if (rc == 0)
        s->change[s->n_changes++] = c;
    return rc;
}

static int emu_spec_mtu(const struct emu_spec_at *at, const char *word, struct emu_spec *s)
{
    int rc = emu_spec_int(at, "mtu", word, 256, 4096, &s->mtu);

    if (rc == 0 && (s->mtu & (s->mtu - 1)) != 0)
        rc = emu_spec_fail(at, "mtu: seen %s, expected 256, 512, 1024, 2048 or 4096", word);
    return rc;
}

static int emu_spec_cpu(const struct emu_spec_at *at, const char *word, struct emu_spec *s)
{
    if (strcmp(word, "on") != 0 && strcmp(word, "off") != 0)
        return emu_spec_fail(at, "cpu: seen \"%s\", expected on or off", word);
    s->cpu = strcmp(word, "on") == 0;
    return 0;
}

static int emu_spec_nodes(const struct emu_spec_at *at, const char *word, struct emu_spec *s)
{
    return emu_spec_int(at, "nodes", word, 1, EMU_SPEC_NODES, &s->nodes);
}

static int emu_spec_gpus(const struct emu_spec_at *at, const char *word, struct emu_spec *s)
{
    return emu_spec_int(at, "gpus", word, 1, EMU_SPEC_GPUS, &s->gpus);
}

static int emu_spec_ports(const struct emu_spec_at *at, const char *word, struct emu_spec *s)
{
    return emu_spec_int(at, "ports", word, 1, EMU_SPEC_PORTS, &s->ports);
}

static int emu_spec_wires(const struct emu_spec_at *at, const char *word, struct emu_spec *s)
{
    return emu_spec_int(at, "wires", word, 1, EMU_SPEC_WIRES, &s->wires);
}

static int emu_spec_lag(const struct emu_spec_at *at, const char *word, struct emu_spec *s)
{
    enum emu_lag lag = EMU_LAG_AFFINITY;

    while (emu_lag_name(lag) && strcmp(emu_lag_name(lag), word) != 0)
        lag++;
    if (!emu_lag_name(lag))
        return emu_spec_fail(at, "lag: seen \"%s\", expected affinity, mixed or hash", word);
    s->lag = lag;
    return 0;
}

static int emu_spec_latency(const struct emu_spec_at *at, const char *word, struct emu_spec *s)
{
    return emu_spec_time(at, "latency", word, &s->latency_ns);
}

static int emu_spec_jitter(const struct emu_spec_at *at, const char *word, struct emu_spec *s)
{
    return emu_spec_time(at, "jitter", word, &s->jitter_ns);
}

static int emu_spec_loss(const struct emu_spec_at *at, const char *word, struct emu_spec *s)
{
    s->loss_tail = strcmp(word, "tail") == 0;
    if (s->loss_tail) {
        s->loss = 0;
        return 0;
    }
    return emu_spec_number(at, "loss", word, emu_spec_no_units, 0, 1, &s->loss);
}

/** A rate, or "ideal", which is 0. */
static int emu_spec_bus(const struct emu_spec_at *at, const char *key, const char *word, uint64_t *out)
{
    double v = 0;

    if (strcmp(word, "ideal") != 0 && emu_spec_number(at, key, word, emu_spec_rate_units, 1e6, 1e13, &v))
        return -EINVAL;
    *out = (uint64_t)llround(v);
    return 0;
}

static int emu_spec_pcie(const struct emu_spec_at *at, const char *word, struct emu_spec *s)
{
    return emu_spec_bus(at, "pcie", word, &s->pcie_bits);
}

static int emu_spec_gpu(const struct emu_spec_at *at, const char *word, struct emu_spec *s)
{
    return emu_spec_bus(at, "gpu", word, &s->gpu_bits);
}

/** At least two packets of any size, or nothing would ever pass. */
static int emu_spec_buffer(const struct emu_spec_at *at, const char *word, struct emu_spec *s)
{
    double v = 0;
    int rc = emu_spec_number(at, "buffer", word, emu_spec_byte_units, 16384, 1e12, &v);

    if (rc == 0)
        s->buffer_bytes = (uint64_t)llround(v);
    return rc;
}

static int emu_spec_topo(const struct emu_spec_at *at, const char *word, struct emu_spec *s)
{
    enum emu_topo t = EMU_TOPO_PIX;

    while (emu_topo_name(t) && strcmp(emu_topo_name(t), word) != 0)
        t++;
    if (!emu_topo_name(t))
        return emu_spec_fail(at, "topo: seen \"%s\", expected pix, pxb, mixed or rail", word);
    s->topo = t;
    return 0;
}

static int emu_spec_planes(const struct emu_spec_at *at, const char *word, struct emu_spec *s)
{
    return emu_spec_int(at, "planes", word, 1, EMU_SPEC_PORTS, &s->planes);
}

/** "h0/mlx5_1:1+h1/mlx5_0:1" */
static int emu_spec_without(const struct emu_spec_at *at, const char *word, struct emu_spec *s)
{
    char copy[EMU_SPEC_WORD], *next = copy;

    snprintf(copy, sizeof(copy), "%s", word);
    while (next) {
        char *one = next;

        next = strchr(one, '+');
        if (next)
            *next++ = '\0';
        if (s->n_without == EMU_SPEC_WITHOUT)
            return emu_spec_fail(at, "without: seen more than %d ports", EMU_SPEC_WITHOUT);
        if (emu_spec_port(at, one, &s->without[s->n_without]))
            return -EINVAL;
        s->n_without++;
    }
    return 0;
}

static int emu_spec_unkind(const struct emu_spec_at *at, const char *word, struct emu_spec *s)
{
    if (!emu_unkind_parse(word, &s->unkind))
        return emu_spec_fail(at, "unkind: seen \"%s\", expected %s", word, emu_unkind_words);
    return 0;
}

/** A key and what reads its value. */
struct emu_spec_row {
    const char *key;
    int (*read)(const struct emu_spec_at *at, const char *word, struct emu_spec *s);
};

static const struct emu_spec_row emu_spec_rows[] = {
    {"nodes", emu_spec_nodes},     {"gpus", emu_spec_gpus},       {"ports", emu_spec_ports},
    {"rate", emu_spec_rates},      {"latency", emu_spec_latency}, {"jitter", emu_spec_jitter},
    {"loss", emu_spec_loss},       {"mtu", emu_spec_mtu},         {"cpu", emu_spec_cpu},
    {"at", emu_spec_timed},        {"buffer", emu_spec_buffer},   {"pcie", emu_spec_pcie},
    {"gpu", emu_spec_gpu},         {"topo", emu_spec_topo},       {"planes", emu_spec_planes},
    {"without", emu_spec_without}, {"unkind", emu_spec_unkind},   {"wires", emu_spec_wires},
    {"lag", emu_spec_lag},
};

enum { EMU_SPEC_ROWS = sizeof(emu_spec_rows) / sizeof(emu_spec_rows[0]) };

/** No such key: names all there are. */
static int emu_spec_unknown(const struct emu_spec_at *at, const char *key)
{
    char known[256] = "";

    for (size_t i = 0; i < EMU_SPEC_ROWS; i++) {
        size_t used = strlen(known);

        snprintf(known + used, sizeof(known) - used, "%s%s",
                 i == 0                  ? ""
                 : i + 1 < EMU_SPEC_ROWS ? ", "
                                         : " or ",
                 emu_spec_rows[i].key);
    }
    return emu_spec_fail(at, "seen \"%s\", expected %s", key, known);
}

static int emu_spec_key(const struct emu_spec_at *at, const char *key, const char *word, struct emu_spec *s)
{
    for (size_t i = 0; i < EMU_SPEC_ROWS; i++) {
        if (strcmp(key, emu_spec_rows[i].key) == 0)
            return emu_spec_rows[i].read(at, word, s);
    }
    return emu_spec_unknown(at, key);
}

static int emu_spec_text(const char *text, const char *file, struct emu_spec *s, char *why, size_t why_len)
{
    struct emu_spec_at at = {text, text, file, why, why_len};
    const char *next;
    size_t len = 0;

    while ((next = emu_spec_word(at.pos + len, &len)) != NULL) {
        char word[EMU_SPEC_WORD];
        char *value;

        at.pos = next;
        if (len >= sizeof(word))
            return emu_spec_fail(&at, "seen a word of %zu characters, expected KEY=VALUE", len);
        snprintf(word, sizeof(word), "%.*s", (int)len, at.pos);
        value = strchr(word, '=');
        if (!value)
            return emu_spec_fail(&at, "seen \"%s\", expected KEY=VALUE", word);
        *value++ = '\0';
        if (emu_spec_key(&at, word, value, s))
            return -EINVAL;
    }
    return emu_spec_whole(&at, s);
}

static int emu_spec_file(const char *name, struct emu_spec *s, char *why, size_t why_len)
{
    FILE *f = fopen(name, "re");
    char *text;
    size_t n;
    int rc;

    if (!f) {
        snprintf(why, why_len, "fabric: seen \"%s\", expected KEY=VALUE,... or the name of a file (%s)", name,
                 strerror(errno));
        return -EINVAL;
    }
    text = calloc(1, EMU_SPEC_FILE_MAX + 1);
    n = text ? fread(text, 1, EMU_SPEC_FILE_MAX + 1, f) : 0;
    fclose(f);
    if (!text || n > EMU_SPEC_FILE_MAX || memchr(text, '\0', n)) {
        snprintf(why, why_len, "fabric: %s: expected a text file of at most %d bytes", name, EMU_SPEC_FILE_MAX);
        rc = -EINVAL;
    } else {
        rc = emu_spec_text(text, name, s, why, why_len);
    }
    free(text);
    return rc;
}

int emu_spec_parse(const char *text, struct emu_spec *out, char *why, size_t why_len)
{
    struct emu_spec s = {.nodes = 2,
                         .gpus = 1,
                         .ports = 2,
                         .rate_bits = {200000000000u},
                         .n_rates = 1,
                         .wires = 1,
                         .latency_ns = 2500,
                         .mtu = 4096,
                         .buffer_bytes = 16 << 20,
                         .cpu = true};
    int rc;

    if (!text)
        text = "";
    if (text[0] && !strchr(text, '='))
        rc = emu_spec_file(text, &s, why, why_len);
    else
        rc = emu_spec_text(text, NULL, &s, why, why_len);
    if (rc == 0)
        *out = s;
    return rc;
}
