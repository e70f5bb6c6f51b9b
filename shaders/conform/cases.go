package conform

import "leat/internal/selftest"

// Cases returns the whole suite.
func Cases() []selftest.Case {
	var cases []selftest.Case
	for _, part := range []func() []selftest.Case{getRowsCases, mulMatCases, vecCases, turnedCases, fewCases, rowCases, ropeCases, kvAppendCases, attnCases, valueCases, argmaxCases, checksumCases, halvesCases, tileCases, attnRunCases, moeCases, thereCases, routedCases, teamIDCases, idHalvesCases, gateCases, stateCases, headCases, spoiledCases, classCases} {
		cases = append(cases, part()...)
	}
	return cases
}
