/* SPDX-License-Identifier: Apache-2.0 */
/* standin_app.c - a program that needs the host library by DT_NEEDED, as NVSHMEM programs do. */
int standin_open(void);

int main(void)
{
    return standin_open();
}
