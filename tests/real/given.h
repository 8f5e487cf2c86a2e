/* SPDX-License-Identifier: Apache-2.0 */
/*
 * given.h - real ports that a user gives to tests which else make themselves an emulated fabric: BRAID_TEST_PORTS holds a list of ports
 * for each host, hosts apart by spaces, e.g. "mlx5_0:1,mlx5_1:1 mlx5_2:1,mlx5_3:1". Every port of a host has to reach that of the same
 * place in the other lists; nothing is expected of ports of different places. Hosts are processes of this machine. Called by
 * tests/real, tests/litmus and tests/host.
 */
#ifndef GIVEN_H
#define GIVEN_H

#include <stddef.h>

/** How many hosts are given; 0: none, there is to be an emulated fabric. */
int given_hosts(void);
/** Writes the first n ports of a host to out, or all where n is 0. How many; -ENOENT where there are not as many, -ENOSPC. */
int given_ports(int host, int n, char *out, size_t len);
/** "0,1,2" for n ports, as libbraid's option planes wants it: a plane each. */
void given_planes(int n, char *out, size_t len);

#endif
