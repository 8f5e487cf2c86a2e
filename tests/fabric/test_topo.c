/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_topo.c - the shape of an emulated fabric by plain verbs: which ports a GPU has, which are not there, which reach
 * each other, and what they can carry. Called by Meson; next: the emulator.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plain.h"

static struct emu_sim *opened(const char *spec)
{
    struct emu_sim_options o = {sizeof(o), spec, 1, EMU_SIM_COROUTINES, 0};
    struct emu_sim *sim = NULL;
    char why[256] = "";

    if (plain_emu()->open(&o, &sim, why, sizeof(why)))
        fail_msg("%s: %s", spec, why);
    return sim;
}

/* ---- shares --------------------------------------------------------------------------------------------------------- */

static const struct share {
    const char *spec;
    int pe;
    const char *ports, *planes;
} shares[] = {
    {"gpus=2", 1, "mlx5_2:1,mlx5_3:1", ""},
    {"gpus=2", 2, "mlx5_0:1,mlx5_1:1", ""},
    {"gpus=2,planes=2", 3, "mlx5_2:1,mlx5_3:1", "0,1"},
    {"ports=4,planes=2", 0, "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1", "0,1,0,1"},
    {"gpus=2,ports=3,topo=rail", 1, "mlx5_3:1,mlx5_4:1,mlx5_5:1", "0,1,2"},
    /* a pair of GPUs shares what is there: disjoint, and counts differ by one at most */
    {"gpus=2,topo=pxb", 0, "mlx5_0:1,mlx5_1:1", ""},
    {"gpus=2,topo=pxb", 1, "mlx5_2:1,mlx5_3:1", ""},
    {"gpus=4,topo=pxb,without=h0/mlx5_4:1+h0/mlx5_5:1", 2, "mlx5_6:1", ""},
    {"gpus=4,topo=pxb,without=h0/mlx5_4:1+h0/mlx5_5:1", 3, "mlx5_7:1", ""},
    {"gpus=4,topo=pxb,without=h0/mlx5_4:1+h0/mlx5_5:1", 6, "mlx5_4:1,mlx5_5:1", ""},
    {"gpus=2,topo=pxb,without=h0/mlx5_0:1", 0, "mlx5_1:1", ""},
    {"gpus=2,topo=pxb,without=h0/mlx5_0:1", 1, "mlx5_2:1,mlx5_3:1", ""},
    {"gpus=2,topo=pxb,without=h0/mlx5_3:1", 0, "mlx5_0:1,mlx5_1:1", ""},
    {"gpus=2,topo=pxb,without=h0/mlx5_3:1", 1, "mlx5_2:1", ""},
    /* fewer ports than GPUs: shared; none: none */
    {"gpus=2,ports=1,topo=pxb,without=h0/mlx5_0:1", 0, "mlx5_1:1", ""},
    {"gpus=2,ports=1,topo=pxb,without=h0/mlx5_0:1", 1, "mlx5_1:1", ""},
    {"gpus=2,ports=1,topo=pxb,without=h0/mlx5_0:1+h0/mlx5_1:1", 1, "", ""},
    /* without pairs a GPU has what is left of its own */
    {"gpus=2,without=h0/mlx5_0:1", 0, "mlx5_1:1", ""},
    {"gpus=2,planes=2,without=h0/mlx5_0:1", 0, "mlx5_1:1", "1"},
    {"gpus=2,without=h0/mlx5_0:1+h0/mlx5_1:1", 0, "", ""},
    {"gpus=2,topo=mixed,without=h0/mlx5_0:1+h0/mlx5_1:1", 0, "mlx5_2:1", ""},
    {"gpus=2,topo=mixed,without=h1/mlx5_0:1+h1/mlx5_1:1", 2, "", ""},
    {"gpus=2,topo=mixed,without=h1/mlx5_0:1+h1/mlx5_1:1", 3, "mlx5_2:1,mlx5_3:1", ""},
};

static void each_gpu_has_its_share_of_ports(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        const struct share *s = &shares[i];
        struct emu_sim *sim = opened(s->spec);
        char ports[128], planes[32];

        assert_int_equal(plain_emu()->pe_ports(sim, s->pe, ports, sizeof(ports)), 0);
        assert_int_equal(plain_emu()->pe_planes(sim, s->pe, planes, sizeof(planes)), 0);
        if (strcmp(ports, s->ports) != 0 || strcmp(planes, s->planes) != 0)
            fail_msg("%s, PE %d: seen \"%s\" in planes \"%s\", expected \"%s\" in \"%s\"", s->spec, s->pe, ports,
                     planes, s->ports, s->planes);
        plain_emu()->close(sim);
    }
}

static void questions_are_checked(void **state)
{
    struct emu_sim *sim = opened("gpus=2,planes=2");
    char text[64];

    (void)state;
    assert_int_equal(plain_emu()->pe_planes(sim, 4, text, sizeof(text)), -EINVAL);
    assert_int_equal(plain_emu()->pe_planes(sim, -1, text, sizeof(text)), -EINVAL);
    assert_int_equal(plain_emu()->pe_planes(sim, 0, text, 3), -ENOSPC);
    assert_int_equal(plain_emu()->pe_planes(sim, 0, text, 4), 0);
    assert_int_equal(plain_emu()->ceiling_text(sim, 4, 1, text, sizeof(text)), -EINVAL);
    assert_int_equal(plain_emu()->ceiling_text(sim, 0, 1, text, 8), -ENOSPC);
    assert_true(plain_emu()->pe_ceiling(sim, 4, 2) == 0);
    assert_true(plain_emu()->pe_ceiling(sim, 0, 0) == 0);
    plain_emu()->close(sim);
}

/* ---- ceilings ------------------------------------------------------------------------------------------------------- */

static const struct ceiling {
    const char *spec;
    int pe, ports;
    double gbs;
    const char *text; /* is in the explanation */
} ceilings[] = {
    {"", 0, 1, 24.5093, "1 x 200 Gb/s, 4096 of 4178 bytes"},
    {"", 0, 2, 49.0186, "2 x 200 Gb/s"},
    {"", 0, 9, 49.0186, "2 x 200 Gb/s"},
    {"rate=400G:200G,ports=3", 1, 3, 98.0373, "1 x 400 Gb/s + 2 x 200 Gb/s"},
    {"mtu=1024", 0, 1, 23.1465, "1024 of 1106 bytes"},
    {"without=h0/mlx5_0:1", 0, 2, 24.5093, "1 x 200 Gb/s"},
    {"pcie=256G", 0, 1, 24.5093, "; at most 256 Gb/s a PCIe slot"},
    {"pcie=256G", 0, 2, 32, "2 x 200 Gb/s, 4096 of 4178 bytes are payload; at most 256 Gb/s a PCIe slot"},
    {"gpu=300G", 0, 2, 37.5, "; at most 300 Gb/s the GPU"},
    {"gpu=300G,pcie=256G", 0, 2, 32, "a PCIe slot; at most 300 Gb/s the GPU"},
    {"pcie=600G,gpu=ideal", 0, 2, 49.0186, "600"},
    /* a share over two cards has two slots */
    {"gpus=2,ports=4,topo=pxb,pcie=100G,without=h0/mlx5_0:1+h0/mlx5_1:1+h0/mlx5_2:1", 0, 2, 25, ""},
    {"at=1ms:slow:h0/mlx5_0:1:0.5", 0, 1, 24.5093, "200 Gb/s"},
};

static void ceilings_are_computed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(ceilings) / sizeof(ceilings[0]); i++) {
        const struct ceiling *c = &ceilings[i];
        struct emu_sim *sim = opened(c->spec);
        double gbs = plain_emu()->pe_ceiling(sim, c->pe, c->ports) / 1e9;
        char text[256];

        assert_int_equal(plain_emu()->ceiling_text(sim, c->pe, c->ports, text, sizeof(text)), 0);
        if (gbs < c->gbs - 1e-4 || gbs > c->gbs + 1e-4 || !strstr(text, c->text))
            fail_msg("%s: seen %.4f GB/s (%s), expected %.4f (%s)", c->spec, gbs, text, c->gbs, c->text);
        plain_emu()->close(sim);
    }
}

/* ---- who reaches whom ------------------------------------------------------------------------------------------------- */

/** A WRITE between two devices of this host ends so. */
static void write_ends(int from, int to, enum ibv_wc_status status)
{
    struct plain_path path = plain_defaults();
    struct plain_port p[2] = {{0}};

    path.timeout = 8; /* 1 ms */
    path.retry = 2;
    if (plain_open(&p[0], from, 4096, 16) && plain_open(&p[1], to, 4096, 16) && plain_qp(&p[0]) && plain_qp(&p[1]) &&
        plain_connect(&p[0], p[0].qp[0], &p[1], p[1].qp[0], &path)) {
        p[0].buf[0] = 0x5a;
        plain_equal("ibv_post_send",
                    plain_post(&p[0], p[0].qp[0], &p[1], (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 1, .len = 8}),
                    0);
        plain_done(&p[0], 1, status);
        plain_equal("the byte at the target", p[1].buf[0], status == IBV_WC_SUCCESS ? 0x5a : 0);
    }
    plain_close(&p[0]);
    plain_close(&p[1]);
}

static int pe_planes(void *arg, int pe)
{
    (void)arg, (void)pe;
    write_ends(0, 1, IBV_WC_RETRY_EXC_ERR);
    write_ends(0, 2, IBV_WC_SUCCESS);
    write_ends(1, 3, IBV_WC_SUCCESS);
    write_ends(3, 2, IBV_WC_RETRY_EXC_ERR);
    write_ends(3, 3, IBV_WC_SUCCESS);
    return 0;
}

static void planes_do_not_reach_each_other(void **state)
{
    (void)state;
    plain_run_gives(0, "nodes=1,ports=4,planes=2", pe_planes, 0);
}

static int pe_rail(void *arg, int pe)
{
    (void)arg;
    if (pe == 0) {
        write_ends(0, 2, IBV_WC_SUCCESS);
        write_ends(0, 3, IBV_WC_RETRY_EXC_ERR);
        write_ends(1, 3, IBV_WC_SUCCESS);
    }
    return plain_emu()->barrier();
}

static void on_rails_equal_ports_meet(void **state)
{
    (void)state;
    plain_run_gives(0, "nodes=1,gpus=2,ports=2,topo=rail", pe_rail, 0);
}

/* ---- ports that are not there ------------------------------------------------------------------------------------------- */

static int pe_without(void *arg, int pe)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    struct plain_path path = plain_defaults();
    struct plain_port p = {0};
    char why[160] = "";

    (void)arg, (void)pe;
    plain_equal("devices", count, 2);
    plain_check(list && strcmp(ibv_get_device_name(list[0]), "mlx5_0") == 0, "first device");
    plain_check(list && list[0] && strcmp(ibv_get_device_name(list[1]), "mlx5_2") == 0, "second device");
    plain_check(list && list[0] && list[1] && !list[2], "the list ends");
    ibv_free_device_list(list);
    plain_equal("changing a port that is not there", plain_emu()->ctl("port h0/mlx5_1:1 down", why, sizeof(why)),
                -EINVAL);
    plain_check(strstr(why, "mlx5_1:1") && strstr(why, "leaves out"), "the reason: %s", why);
    write_ends(0, 1, IBV_WC_SUCCESS);
    /* the address that the port would have */
    path.timeout = 8;
    path.retry = 1;
    if (plain_open(&p, 0, 4096, 16) && plain_qp(&p)) {
        p.gid.raw[15]++;
        plain_equal("connecting", plain_connect_to(p.qp[0], 0x1234, &p.gid, &path), 0);
        plain_post(&p, p.qp[0], &p, (struct plain_wr){.op = IBV_WR_RDMA_WRITE, .id = 1, .len = 8});
        plain_done(&p, 1, IBV_WC_RETRY_EXC_ERR);
    }
    plain_close(&p);
    return 0;
}

static void a_port_that_is_not_there_is_seen_by_nobody(void **state)
{
    struct emu_sim *sim = opened("nodes=2,ports=3,without=h0/mlx5_1:1");
    struct emu_sim_port port;

    (void)state;
    plain_run_gives(0, "nodes=1,ports=3,without=h0/mlx5_1:1", pe_without, 0);
    assert_int_equal(plain_emu()->port(sim, 1, &port), 0);
    assert_string_equal(port.port, "mlx5_2:1");
    assert_int_equal(plain_emu()->port(sim, 4, &port), 0);
    assert_string_equal(port.host, "h1");
    assert_string_equal(port.port, "mlx5_2:1");
    assert_int_equal(plain_emu()->port(sim, 5, &port), -ENOENT);
    plain_emu()->close(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_gpu_has_its_share_of_ports), cmocka_unit_test(questions_are_checked),
        cmocka_unit_test(ceilings_are_computed),           cmocka_unit_test(planes_do_not_reach_each_other),
        cmocka_unit_test(on_rails_equal_ports_meet),       cmocka_unit_test(a_port_that_is_not_there_is_seen_by_nobody),
    };

    return cmocka_run_group_tests_name("topo", tests, NULL, NULL);
}
