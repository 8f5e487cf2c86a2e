/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_stub.c - what libibverbs keeps for its own drivers (IBVERBS_PRIVATE_34). Programs load drivers too, libmlx5 above all, and
 * those bind these names when they are loaded; nobody calls them, since no device here is a driver's. Knows nothing.
 * Called by drivers' constructors only.
 */
#include <errno.h>

#define EMU_STUB __attribute__((visibility("default"), alias("emu_stub_refuse")))

/** Does nothing, whatever it is asked; a driver that offers itself hears nothing of it. */
int emu_stub_refuse(void);

int emu_stub_refuse(void)
{
    return EOPNOTSUPP;
}

EMU_STUB int verbs_register_driver_34(void);
/* NOLINTBEGIN(bugprone-reserved-identifier): rdma-core makes these names */
EMU_STUB int __verbs_log(void);
EMU_STUB int __ioctl_final_num_attrs(void);
EMU_STUB int _verbs_init_and_alloc_context(void);
/* NOLINTEND(bugprone-reserved-identifier) */
EMU_STUB int execute_ioctl(void);
EMU_STUB int ibv_cmd_advise_mr(void);
EMU_STUB int ibv_cmd_alloc_dm(void);
EMU_STUB int ibv_cmd_alloc_mw(void);
EMU_STUB int ibv_cmd_alloc_pd(void);
EMU_STUB int ibv_cmd_attach_mcast(void);
EMU_STUB int ibv_cmd_close_xrcd(void);
EMU_STUB int ibv_cmd_create_ah(void);
EMU_STUB int ibv_cmd_create_counters(void);
EMU_STUB int ibv_cmd_create_cq(void);
EMU_STUB int ibv_cmd_create_cq_ex(void);
EMU_STUB int ibv_cmd_create_flow(void);
EMU_STUB int ibv_cmd_create_flow_action_esp(void);
EMU_STUB int ibv_cmd_create_qp(void);
EMU_STUB int ibv_cmd_create_qp_ex(void);
EMU_STUB int ibv_cmd_create_qp_ex2(void);
EMU_STUB int ibv_cmd_create_rwq_ind_table(void);
EMU_STUB int ibv_cmd_create_srq(void);
EMU_STUB int ibv_cmd_create_srq_ex(void);
EMU_STUB int ibv_cmd_create_wq(void);
EMU_STUB int ibv_cmd_dealloc_mw(void);
EMU_STUB int ibv_cmd_dealloc_pd(void);
EMU_STUB int ibv_cmd_dereg_mr(void);
EMU_STUB int ibv_cmd_destroy_ah(void);
EMU_STUB int ibv_cmd_destroy_counters(void);
EMU_STUB int ibv_cmd_destroy_cq(void);
EMU_STUB int ibv_cmd_destroy_flow(void);
EMU_STUB int ibv_cmd_destroy_flow_action(void);
EMU_STUB int ibv_cmd_destroy_qp(void);
EMU_STUB int ibv_cmd_destroy_rwq_ind_table(void);
EMU_STUB int ibv_cmd_destroy_srq(void);
EMU_STUB int ibv_cmd_destroy_wq(void);
EMU_STUB int ibv_cmd_detach_mcast(void);
EMU_STUB int ibv_cmd_free_dm(void);
EMU_STUB int ibv_cmd_get_context(void);
EMU_STUB int ibv_cmd_modify_cq(void);
EMU_STUB int ibv_cmd_modify_flow_action_esp(void);
EMU_STUB int ibv_cmd_modify_qp(void);
EMU_STUB int ibv_cmd_modify_qp_ex(void);
EMU_STUB int ibv_cmd_modify_srq(void);
EMU_STUB int ibv_cmd_modify_wq(void);
EMU_STUB int ibv_cmd_open_qp(void);
EMU_STUB int ibv_cmd_open_xrcd(void);
EMU_STUB int ibv_cmd_poll_cq(void);
EMU_STUB int ibv_cmd_post_recv(void);
EMU_STUB int ibv_cmd_post_send(void);
EMU_STUB int ibv_cmd_post_srq_recv(void);
EMU_STUB int ibv_cmd_query_context(void);
EMU_STUB int ibv_cmd_query_device_any(void);
EMU_STUB int ibv_cmd_query_mr(void);
EMU_STUB int ibv_cmd_query_port(void);
EMU_STUB int ibv_cmd_query_qp(void);
EMU_STUB int ibv_cmd_query_srq(void);
EMU_STUB int ibv_cmd_read_counters(void);
EMU_STUB int ibv_cmd_reg_dm_mr(void);
EMU_STUB int ibv_cmd_reg_dmabuf_mr(void);
EMU_STUB int ibv_cmd_reg_mr(void);
EMU_STUB int ibv_cmd_req_notify_cq(void);
EMU_STUB int ibv_cmd_rereg_mr(void);
EMU_STUB int ibv_cmd_resize_cq(void);
EMU_STUB int verbs_allow_disassociate_destroy(void);
EMU_STUB int verbs_init_cq(void);
EMU_STUB int verbs_open_device(void);
EMU_STUB int verbs_set_ops(void);
EMU_STUB int verbs_uninit_context(void);
