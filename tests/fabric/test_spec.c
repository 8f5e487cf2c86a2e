/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_spec.c - the FABRIC SPEC as users write it, in a line or in a file: what is refused, where and why, and that what is
 * printed reads back. Called by Meson; next: the emulator's emu_spec.c through emu_sim_api.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "plain.h"

static char why[1024];

static void bad_spec(const char *spec, const char *expected)
{
    struct emu_sim_options o = {sizeof(o), spec, 1, EMU_SIM_COROUTINES, 0};
    struct emu_sim *sim = (struct emu_sim *)(void *)why;

    why[0] = '\0';
    assert_int_equal(plain_emu()->open(&o, &sim, why, sizeof(why)), -EINVAL);
    assert_ptr_equal(sim, why); /* outputs are untouched on failure */
    if (!strstr(why, expected))
        fail_msg("\"%s\": seen \"%s\", expected \"%s\" in it", spec, why, expected);
}

static void bad_specs_are_explained(void **state)
{
    (void)state;
    bad_spec("nodes=0", "expected a whole number from 1 to 64");
    bad_spec("nodes=2x", "seen \"2x\"");
    bad_spec("nodes=2,prots=2", "at character 9: seen \"prots\"");
    bad_spec("nodes=2,ports", "expected KEY=VALUE");
    bad_spec("nodes=", "nodes");
    bad_spec("rate=200", "rate");
    bad_spec("rate=200X", "expected a number with its unit");
    bad_spec("rate=nan", "rate");
    bad_spec("rate=-1G", "rate");
    bad_spec("rate=1e999G", "rate");
    bad_spec("ports=1,rate=1G:2G", "at character 9: rate: seen 2 rates, expected at most one a port");
    bad_spec("latency=5", "latency");
    bad_spec("latency=5m", "latency");
    bad_spec("loss=1.5", "expected 0 to 1");
    bad_spec("mtu=1500", "expected 256, 512, 1024, 2048 or 4096");
    bad_spec("cpu=maybe", "expected on or off");
    bad_spec("at=2ms", "expected TIME:");
    bad_spec("at=2ms:down:h0/mlx5_9:1", "expected hosts below h2");
    bad_spec("at=2ms:down:h0/mlx5_0:1,at=3ms:down:h0/mlx5_9:1,cpu=off", "at character 25: at: seen port h0/mlx5_9:1");
    bad_spec("at=2ms:slow:h0/mlx5_0:1", "expected one behind the port");
    bad_spec("at=2ms:melt:h0/mlx5_0:1", "expected down, up, stall, slow");
    bad_spec("at=2ms:down:mlx5_0", "at");
    bad_spec("at=2ms:stall:h0/mlx5_0:1:0.5", "expected nothing");
    bad_spec("topo=ring", "topo: seen \"ring\", expected pix, pxb, mixed or rail");
    bad_spec("gpus=3,topo=pix,topo=pxb,nodes=2", "at character 17: topo=pxb: seen gpus=3, expected an even number");
    bad_spec("topo=mixed,gpus=2,nodes=1", "expected at least 2");
    bad_spec("nodes=1,planes=3,gpus=2",
             "at character 9: planes: seen 3, expected at most one a port of a GPU (ports=2)");
    bad_spec("planes=0", "expected a whole number from 1");
    bad_spec("topo=rail,ports=4,planes=2", "at character 19: topo=rail: seen planes=2, expected a plane for each port");
    bad_spec("without=h0/mlx5_0", "expected a port such as");
    bad_spec("without=h0/mlx5_0:1+", "expected a port such as");
    bad_spec("without=h0/mlx5_0:1+h2/mlx5_0:1", "expected hosts below h2");
    bad_spec("without=h0/mlx5_0:1+h0/mlx5_0:1", "twice");
    bad_spec("without=h0/mlx5_0:1,at=1ms:down:h0/mlx5_0:1", "expected a port that is there");
    bad_spec("pcie=256", "pcie: seen \"256\", expected");
    bad_spec("gpu=none", "gpu: seen \"none\", expected");
    bad_spec("buffer=16", "expected 16384 to");
    bad_spec("buffer=16MB", "buffer");
    bad_spec("loss=tale", "loss");
    bad_spec("wire=1", "expected nodes, gpus, ports");
    bad_spec("wires=0", "expected a whole number from 1 to 8");
    bad_spec("wires=9", "expected a whole number from 1 to 8");
    bad_spec("lag=on", "lag: seen \"on\", expected affinity, mixed or hash");
    bad_spec("wires=2,at=1ms:down:h0/mlx5_0:1.3", "at character 9: at: seen wire 3 of a port, expected at most 2");
    bad_spec("at=1ms:down:h0/mlx5_0:1.2", "seen wire 2 of a port, expected at most 1");
    bad_spec("at=1ms:down:h0/mlx5_0:1.0", "expected a port such as");
    bad_spec("at=1ms:down:h0/mlx5_0:1.", "expected a port such as");
    bad_spec("at=1ms:down:h0/mlx5_0:12", "expected a port such as");
    bad_spec("wires=2,without=h0/mlx5_0:1.2", "without: seen wire 2 of a port, expected a port");
    bad_spec("/no/such/file", "name of a file");
    bad_spec("nodes=99999999999999999999", "nodes");
}

/** A file of this name with this text. */
static void spec_file(char *name, size_t len, const char *text)
{
    const char *folder = getenv("TMPDIR");
    int fd;

    snprintf(name, len, "%s/braid-spec-XXXXXX", folder ? folder : "/tmp");
    fd = mkstemp(name);
    assert_true(fd >= 0);
    assert_true(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void a_spec_may_be_a_file(void **state)
{
    struct emu_sim_options o = {sizeof(o), NULL, 1, EMU_SIM_COROUTINES, 0};
    struct emu_sim *sim;
    char name[256];

    (void)state;
    spec_file(name, sizeof(name), "# two small hosts\n\nnodes=2\nports=3  # each\n\tcpu=off,mtu=1024\r\nplanes=3");
    o.fabric = name;
    assert_int_equal(plain_emu()->open(&o, &sim, why, sizeof(why)), 0);
    if (strncmp(plain_emu()->fabric(sim), "nodes=2,gpus=1,ports=3,", 23) != 0 ||
        !strstr(plain_emu()->fabric(sim), "mtu=1024") || !strstr(plain_emu()->fabric(sim), "planes=3"))
        fail_msg("read as %s", plain_emu()->fabric(sim));
    plain_emu()->close(sim);
    unlink(name);
    spec_file(name, sizeof(name), "# wrong\nnodes=2\n ports=0\n");
    bad_spec(name, "at line 3, character 2: ports: seen \"0\"");
    bad_spec(name, name);
    unlink(name);
    spec_file(name, sizeof(name), "nodes=2\nplanes=4 # too many\nports=2\n");
    bad_spec(name, "at line 2, character 1: planes: seen 4");
    unlink(name);
}

static void a_printed_spec_reads_back(void **state)
{
    static const char *const specs[] = {
        "",
        "nodes=3,gpus=2,ports=2,rate=400G:100G,latency=1.3us,jitter=700ns,loss=0.1,mtu=1024",
        "ports=4,gpus=2,topo=mixed,planes=2,without=h1/mlx5_7:1+h0/mlx5_0:1,without=h0/mlx5_1:1",
        "topo=rail,buffer=100000,loss=tail,at=0s:stall:h0/mlx5_0:1",
        "ports=1,wires=4,lag=mixed,at=1ms:down:h0/mlx5_0:1.3,at=2ms:slow:h1/mlx5_0:1:0.5",
        "buffer=3M,topo=pxb,gpus=4,pcie=256G,gpu=1.5T",
        "cpu=off,at=1ms:down:h1/mlx5_0:1,at=2ms:slow:h0/mlx5_1:1:0.3,at=3us:delay:h0/mlx5_0:1:5us"};

    (void)state;
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        struct emu_sim_options o = {sizeof(o), specs[i], 1, EMU_SIM_COROUTINES, 0};
        struct emu_sim *a, *b;
        char printed[1024];

        assert_int_equal(plain_emu()->open(&o, &a, why, sizeof(why)), 0);
        snprintf(printed, sizeof(printed), "%s", plain_emu()->fabric(a));
        o.fabric = printed;
        assert_int_equal(plain_emu()->open(&o, &b, why, sizeof(why)), 0);
        assert_string_equal(printed, plain_emu()->fabric(b));
        plain_emu()->close(a);
        plain_emu()->close(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_specs_are_explained),
        cmocka_unit_test(a_spec_may_be_a_file),
        cmocka_unit_test(a_printed_spec_reads_back),
    };

    return cmocka_run_group_tests_name("spec", tests, NULL, NULL);
}
