"""fleetrun: starts and runs distributed training. The programs are in the wheel as they are; this package only finds them."""
