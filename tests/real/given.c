/* SPDX-License-Identifier: Apache-2.0 */
/*
 * given.c - see given.h. Knows the variable and nothing of ports.
 */
#include "given.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *given_all(void)
{
    const char *all = getenv("BRAID_TEST_PORTS");

    return all ? all : "";
}

int given_hosts(void)
{
    int n = 0;

    for (const char *at = given_all(); *(at += strspn(at, " ")); at += strcspn(at, " "))
        n++;
    return n;
}

int given_ports(int host, int n, char *out, size_t len)
{
    const char *at = given_all() + strspn(given_all(), " ");
    size_t end = 0;
    int seen = 0;

    for (; host > 0 && *at; host--) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    while (at[end] && at[end] != ' ' && (n == 0 || seen < n)) {
        end += strcspn(at + end, ", ");
        seen++;
        if (at[end] == ',' && seen != n)
            end++;
    }
    if (seen == 0 || (n && seen < n))
        return -ENOENT;
    if (end >= len)
        return -ENOSPC;
    memcpy(out, at, end);
    out[end] = '\0';
    return seen;
}

void given_planes(int n, char *out, size_t len)
{
    size_t used = 0;

    out[0] = '\0';
    for (int i = 0; i < n && used < len; i++)
        used += (size_t)snprintf(out + used, len - used, "%s%d", i ? "," : "", i);
}
