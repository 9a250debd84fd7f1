#include "worker/data/commands.h"

int main(int argc, char **argv)
{
	return wlb_program_main(&wlb_data_program, argc, argv);
}
