// A source beside which the headers that tests share are precompiled: main.cpp needs Catch2 in another form.
