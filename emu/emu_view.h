/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_view.h - a fabric of real time from outside: the functions behind emu_sim_api, described there.
 */
#ifndef EMU_VIEW_H
#define EMU_VIEW_H

#include <stddef.h>

struct emu_real_port;

/** spec_name() of emu_sim_api. */
int emu_view_name(const char *fabric, char out[24], char *why, size_t why_len);
/** spec_ports() of emu_sim_api. */
int emu_view_spec_ports(const char *fabric, struct emu_real_port *out, int max, char *why, size_t why_len);
/** real_ports() of emu_sim_api. */
int emu_view_real_ports(const char *name, struct emu_real_port *out, int max, char *why, size_t why_len);
/** real_ctl() of emu_sim_api. */
int emu_view_real_ctl(const char *name, const char *command, char *why, size_t why_len);

#endif
