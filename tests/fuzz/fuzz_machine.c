/* Any description of a machine: refused with a message, or one that passes its check. */
#include "planner/machine.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wlb_machine machine;
	struct wlb_error error = {0};
	if (wlb_machine_file_parse((const char *)data, bytes, &machine, &error) < 0) {
		must(error.message[0] != '\0');
		return 0;
	}
	must(wlb_machine_check(&machine, &error) == 0);
	must(machine.name[0] != '\0');
	must(wlb_machine_gather_s(&machine, 4, 2, 1, 1e9) > 0.0);
	must(wlb_machine_gemm_s(&machine, 1000.0, 3000.0, 500.0) > 0.0);
	must(wlb_machine_attention_s(&machine, 3, 64, 0.0, 100.0, 5000.0, 1) > 0.0);
	return 0;
}
