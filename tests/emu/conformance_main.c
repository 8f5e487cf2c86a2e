/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_main.c - braid-conformance: the list on real verbs devices, by the real clock.
 *
 * Links the system's libibverbs; on another one (the emulator in real time) it runs by LD_LIBRARY_PATH. next:
 * conformance.c.
 */
#include "conformance.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char help[] =
    "usage: braid-conformance --device DEV[:PORT] [--peer DEV[:PORT]] [OPTION...]\n"
    "Checks what an RC queue pair must do, between two ports that reach each other. Prints TAP.\n"
    "\n"
    "  --device DEV[:PORT]  port A, e.g. mlx5_0:1 (see ibv_devices)\n"
    "  --peer DEV[:PORT]    port B; default: the same port\n"
    "  --gid-index N        default 0; RoCE v2 with IPv4 is often 3 (see show_gids)\n"
    "  --known NAME         whose known deviations apply: rxe, emu, none; default: found from the device\n"
    "  --only LIST          only checks whose names begin so, e.g. read_,psn_\n"
    "  --seed N             decides data, PSNs and traffic; default 1\n"
    "  --cable-out CMD      shell command that cuts port B's cable, and\n"
    "  --cable-in CMD       puts it back; without them these checks are skipped\n"
    "  --list               names of the checks\n"
    "  --help\n"
    "\n"
    "example: braid-conformance --device mlx5_0 --peer mlx5_1 --gid-index 3\n"
    "exit: 0 all passed or are known deviations, 1 some failed, 2 used wrongly or ports unusable\n";

/* A software device counts its timers in the kernel's ticks of 1 to 10 ms, the first of which is short. */
enum { JIFFY = 10000000 };

/* What the command line gave. */
struct main_options {
    struct conformance_env env;
    char *cable[2]; /* commands: out, in */
    bool list, help;
};

static uint64_t real_now(void *arg)
{
    struct timespec t;
    (void)arg;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SEC + (uint64_t)t.tv_nsec;
}

/* Sleeps a little: a software device needs the CPU that a busy poll would take from it. */
static void real_wait(void *arg, uint64_t deadline_ns)
{
    uint64_t now = real_now(arg);
    uint64_t ns = deadline_ns > now ? deadline_ns - now : 0;
    struct timespec t = {0, ns < 20000 ? (long)ns : 20000};
    nanosleep(&t, NULL);
}

static int real_cable(void *arg, int side, bool up)
{
    const struct main_options *o = arg;
    (void)side; /* always B: the list cuts no other */
    return system(o->cable[up]) == 0 ? 0 : -EIO;
}

/* A whole number in [least, most]; false: something else. */
static bool number(const char *text, unsigned long long least, unsigned long long most, unsigned long long *out)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 0);
    if (errno || end == text || *end || *text == '-' || n < least || n > most)
        return false;
    *out = n;
    return true;
}

/* "mlx5_0:1" into name and port; without a port: 1. */
static bool device(char *text, struct conformance_env *env, int side)
{
    unsigned long long port = 1;
    char *colon = strrchr(text, ':');
    if (colon) {
        if (!number(colon + 1, 1, 255, &port))
            return false;
        *colon = 0;
    }
    env->device[side] = text;
    env->port[side] = (int)port;
    return *text != 0;
}

static bool option(struct main_options *o, int key)
{
    unsigned long long n = 0;
    bool good = true;
    switch (key) {
    case 'd':
        return device(optarg, &o->env, A);
    case 'p':
        return device(optarg, &o->env, B);
    case 'g':
        good = number(optarg, 0, 255, &n);
        o->env.gid_index = (int)n;
        return good;
    case 's':
        good = number(optarg, 0, UINT64_MAX, &n);
        o->env.seed = n;
        return good;
    case 'k':
        o->env.fabric = optarg;
        return true;
    case 'o':
        o->env.only = optarg;
        return true;
    case 'O':
    case 'I':
        o->cable[key == 'I'] = optarg;
        return true;
    case 'l':
        return o->list = true;
    case 'h':
        return o->help = true;
    }
    return false;
}

static int misuse(const char *what, const char *value)
{
    fprintf(stderr, "braid-conformance: %s%s; see --help\n", what, value);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option names[] = {
        {"device", 1, NULL, 'd'},
        {"peer", 1, NULL, 'p'},
        {"gid-index", 1, NULL, 'g'},
        {"known", 1, NULL, 'k'},
        {"only", 1, NULL, 'o'},
        {"seed", 1, NULL, 's'},
        {"cable-out", 1, NULL, 'O'},
        {"cable-in", 1, NULL, 'I'},
        {"list", 0, NULL, 'l'},
        {"help", 0, NULL, 'h'},
        {0},
    };
    struct main_options o = {.env = {.seed = 1, .now = real_now, .wait = real_wait, .grain_ns = JIFFY}};
    for (int key; (key = getopt_long(argc, argv, "", names, NULL)) != -1;)
        if (!option(&o, key))
            return key == '?' ? misuse("unknown or incomplete option", "") : misuse("bad value: ", optarg);
    if (optind < argc)
        return misuse("unexpected argument: ", argv[optind]);
    if (o.help)
        return fputs(help, stdout) < 0;
    if (o.list) {
        conformance_list();
        return 0;
    }
    if (!o.env.device[A])
        return misuse("no --device given", "");
    if (!o.env.device[B]) {
        o.env.device[B] = o.env.device[A];
        o.env.port[B] = o.env.port[A];
    }
    o.env.arg = &o;
    if (o.cable[0] && o.cable[1])
        o.env.cable = real_cable;
    return conformance_run(&o.env);
}
