for x in y:
	z = (1,

		"unended
